package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/version"
	"github.com/conclave-io/conclave/process"
)

// alone is a host that is the only member, with one guarded prefix.
func alone(t testing.TB, c Config, u view.Use) *lonely {
	t.Helper()
	if err := Check(u); err != nil {
		t.Fatal(err)
	}
	c.Server, c.Lease = 1, registry.MaxTTL
	l := &lonely{Host: New(c), t: t}
	seat := view.Seat{Server: 1, ID: [2]uint64{1}}
	l.Enter(seat.ID)
	l.Answer(0, []registry.Outcome{{Session: registry.SeatID(seat), Sequence: 1, Result: registry.Result{Code: registry.OK, Remaining: forever}}})
	l.View(0, &view.Log{View: view.View{Epoch: 1, Members: []view.Seat{seat}}, Seats: []view.Seat{seat}, Guards: []view.Guard{{Prefix: "a/", Use: u}}})
	if l.Member().State != view.Open {
		t.Fatalf("the only member is %s", l.Member().State)
	}
	l.submit(registry.Command{Op: registry.OpOpen, TTL: registry.MaxTTL})
	return l
}

// lonely has one client.
type lonely struct {
	*Host
	t      testing.TB
	number uint64
	seat   []registry.Command // what it has said for its seat
}

// submit sends a request and returns the answer, if it has come.
func (l *lonely) submit(c registry.Command) (result registry.Result) {
	l.number++
	c.Session, c.Sequence = registry.SessionID{1}, l.number
	l.Submit(l.now, 1, []registry.Command{c})
	o := l.Output()
	l.seat = append(l.seat, o.Seat...)
	for _, r := range o.Replies {
		if r.Sequence == c.Sequence && r.Result.Code != registry.Queued {
			result = r.Result
		}
	}
	return result
}

// enter acquires and releases a name. It returns the code, and the fence in its epoch.
func (l *lonely) enter(name string) (registry.Code, uint64) {
	got := l.submit(registry.Command{Op: registry.OpAcquire, Name: name})
	if got.Code == registry.OK {
		if left := l.submit(registry.Command{Op: registry.OpRelease, Hold: l.number}); left.Code != registry.OK {
			l.t.Fatalf("%s is released: %+v", name, left)
		}
	}
	return got.Code, got.Fence & (1<<fenceBits - 1)
}

// turns returns the reasons why it has asked for other epochs.
func (l *lonely) turns() (reasons []string) {
	for i := range l.seat {
		if l.seat[i].Op == registry.OpTurn {
			reasons = append(reasons, l.seat[i].Value)
		}
	}
	return reasons
}

// I6: names are refused beyond the bound, and a sweep is asked for before.
func TestTooManyNames(t *testing.T) {
	l := alone(t, Config{MaxNames: 20}, view.Use{Algorithm: "suzuki-kasami"})
	for i := range 30 {
		want := registry.OK
		if i >= 20 {
			want = registry.Exhausted
		}
		if code, _ := l.enter(fmt.Sprint("a/", i)); code != want {
			t.Fatalf("name %d: code %d, want %d", i, code, want)
		}
		if asked := len(l.turns()) > 0; asked != (i >= 18) {
			t.Errorf("a sweep is asked for at name %d: %v", i, l.turns())
		}
	}
	if len(l.turns()) != 1 {
		t.Errorf("turns %v, want 1", l.turns())
	}
	if code, _ := l.enter("a/3"); code != registry.OK {
		t.Errorf("a name that has a machine: code %d", code)
	}
}

// The histogram of waits has each entry, with the time from the request to the algorithm.
func TestWaits(t *testing.T) {
	l := alone(t, Config{}, view.Use{Algorithm: "total-order-sequencer"})
	for i := range 7 {
		l.enter(fmt.Sprint("a/", i%2))
	}
	s := l.Status()
	all, _ := s.Waits.Buckets()
	if all != 7 || s.All.Entries != 7 || s.Waits.Sum != s.All.Waited {
		t.Errorf("%d waits of %d ns together, %d entries of %d ns, want 7", all, s.Waits.Sum, s.All.Entries, s.All.Waited)
	}
}

// I5: idle machines are kept for reuse, up to a number and a time, and the next machine
// begins above the marks of those that were dropped.
func TestReuse(t *testing.T) {
	l := alone(t, Config{Reuse: 3}, view.Use{Algorithm: "central"})
	for i := range 5 {
		l.enter(fmt.Sprint("a/", i))
	}
	if len(l.machines.names) != 3 || l.machines.prefixes[0].names != 3 {
		t.Errorf("%d machines are kept, and %d counted, want 3", len(l.machines.names), l.machines.prefixes[0].names)
	}
	if _, f := l.enter("a/4"); f != 3 {
		t.Errorf("a machine that is used again gives fence %d, want 3", f)
	}
	l.Tick(idleFor, 0)
	if len(l.machines.names) != 0 || l.machines.prefixes[0].base.Fence != 3 {
		t.Errorf("%d machines are kept too long, base %v", len(l.machines.names), l.machines.prefixes[0].base)
	}
	if _, f := l.enter("a/0"); f != 4 {
		t.Errorf("fence %d after the machines were dropped, want 4", f)
	}
}

// I7 and I9: large fences ask for another epoch, and one that does not fit ends the host.
func TestLargeFences(t *testing.T) {
	l := alone(t, Config{}, view.Use{Algorithm: "central"})
	l.machines.prefixes[0].base.Fence = fenceHigh
	if code, _ := l.enter("a/1"); code != registry.OK || !slices.Equal(l.turns(), []string{"large fences"}) {
		t.Errorf("code %d, turns %v", code, l.turns())
	}
	l.machines.prefixes[0].base.Fence = fenceBound
	l.enter("a/2")
	o := l.Output()
	var failed process.Violation
	if !errors.As(o.Err, &failed) || len(o.Replies) != 0 {
		t.Fatalf("after an assertion: %+v", o)
	}
	l.Tick(1e9, 0)
	l.View(1e9, new(view.Log))
	if err := l.Receive(1e9, 2, nil); err != nil || l.Output().Err != o.Err {
		t.Errorf("it goes on: %v", err)
	}
}

// What may guard names is what servers can run.
func TestMachines(t *testing.T) {
	if may := version.Machines(version.Guarded); !slices.Equal(may, lockNames()) {
		t.Errorf("%v may guard names, %v are served", may, lockNames())
	}
}

func TestCheck(t *testing.T) {
	for options, want := range map[string]string{
		"central ": "", "central coordinator=first,delay=1000,mode=deny-poll,section=1": "",
		"k-ricart-agrawala k=3": "", "majority replicas=5": "", "majority votes=16": "", "token-ring delta=500": "", " ": "",
		" k=3":                             `options "k=3": must be empty`,
		"swim ":                            `"swim" is not an algorithm that servers run`,
		"central mode=deny-poll,delay=5":   "sorted by name",
		"central delay=5,delay=6":          "option delay: given twice",
		"central delay":                    `option "delay": must be name=value`,
		"central delay=0":                  "must be a number from 1",
		"central coordinator=last":         "must be one of [spread elected first]",
		"central k=3":                      `central has no option "k"`,
		"k-ricart-agrawala k=many":         "must be a number",
		"majority mode=lease":              "takes a right back",
		"singhal-printed ":                 "is not an algorithm that servers run",
		"token-ring-recovering section=10": "is not an algorithm that servers run",
	} {
		name, text, _ := strings.Cut(options, " ")
		err := Check(view.Use{Algorithm: name, Options: text})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", options, err, want)
		}
	}
}

// A request that is answered leaves nothing behind, whatever the answer is. One that waits
// is answered over its own stream and over the newest of its session.
func TestRoutes(t *testing.T) {
	l := alone(t, Config{}, view.Use{Algorithm: "central"})
	for _, name := range []string{"a/x", "b", "a/y"} {
		l.submit(registry.Command{Op: registry.OpAcquire, Name: name})
	}
	l.submit(registry.Command{Op: registry.OpAcquire, Name: "a/x", Limit: 2})
	if n := len(l.home.routes); n != 1 { // that of Open, which waits for a renewal of the seat
		t.Errorf("%d requests have a route, want 1", n)
	}
	waits := registry.Command{Op: registry.OpAcquire, Session: registry.SessionID{1}, Sequence: 100, Name: "a/x"}
	l.Submit(l.now, 2, []registry.Command{waits})
	l.Submit(l.now, 3, []registry.Command{{Op: registry.OpRelease, Session: registry.SessionID{1}, Sequence: 101, Hold: 2}})
	told := make(map[uint64]bool)
	for _, r := range l.Output().Replies {
		if r.Sequence == waits.Sequence && r.Result.Code == registry.OK {
			told[r.Conn] = true
		}
	}
	if !told[2] || !told[3] {
		t.Errorf("the grant goes to %v, want 2, where it was asked for, and 3", told)
	}
}

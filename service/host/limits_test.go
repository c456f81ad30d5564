package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/service/version"
)

// alone is a host that is the only member, with one namespace.
func alone(t *testing.T, c Config, u view.Use) *Host {
	t.Helper()
	if err := Check(u); err != nil {
		t.Fatal(err)
	}
	c.Server = 1
	h := New(c)
	seat := view.Seat{Server: 1, ID: [2]uint64{1}}
	h.Enter(seat.ID)
	h.View(0, &Seen{View: view.View{Epoch: 1, Members: []view.Seat{seat}}, Seats: []view.Seat{seat}, Guards: []view.Guard{{Prefix: "a/", Use: u}}})
	if h.Member().State != view.Open {
		t.Fatalf("the only member is %s", h.Member().State)
	}
	return h
}

// I6: names are refused beyond the bound, and a sweep is asked for before.
func TestTooManyNames(t *testing.T) {
	h := alone(t, Config{MaxNames: 20}, view.Use{Algorithm: "suzuki-kasami"})
	turns := 0
	for i := range 30 {
		name := fmt.Sprint("a/", i)
		err := h.want(name)
		if refused := err != nil; refused != (i >= 20) || refused && !errors.Is(err, errTooMany) {
			t.Fatalf("name %d: %v", i, err)
		}
		h.leave(name)
		if o := h.Output(); o.Turn != "" {
			turns++
			if i != 18 {
				t.Errorf("a sweep is asked for at name %d, want 18", i)
			}
		}
	}
	if turns != 1 {
		t.Errorf("%d sweeps are asked for, want 1", turns)
	}
	if err := h.want("a/3"); err != nil {
		t.Errorf("a name that has a machine: %v", err)
	}
}

// I5: idle machines are kept for reuse, up to a number and a time, and the next machine
// begins above the marks of those that were dropped.
func TestReuse(t *testing.T) {
	h := alone(t, Config{Reuse: 3}, view.Use{Algorithm: "central"})
	enter := func(name string) uint64 {
		t.Helper()
		if err := h.want(name); err != nil {
			t.Fatal(err)
		}
		h.leave(name)
		o := h.Output()
		if len(o.Granted) != 1 || o.Granted[0].Name != name {
			t.Fatalf("granted %v, want %s", o.Granted, name)
		}
		return o.Granted[0].Fence & (1<<fenceBits - 1)
	}
	for i := range 5 {
		enter(fmt.Sprint("a/", i))
	}
	if len(h.names) != 3 || h.spaces[0].names != 3 {
		t.Errorf("%d machines are kept, and %d counted, want 3", len(h.names), h.spaces[0].names)
	}
	if f := enter("a/4"); f != 3 {
		t.Errorf("a machine that is used again gives fence %d, want 3", f)
	}
	h.Tick(idleFor)
	if len(h.names) != 0 || h.spaces[0].base.Fence != 3 {
		t.Errorf("%d machines are kept too long, base %v", len(h.names), h.spaces[0].base)
	}
	if f := enter("a/0"); f != 4 {
		t.Errorf("fence %d after the machines were dropped, want 4", f)
	}
}

// I7 and I9: large fences ask for another epoch, and one that does not fit ends the host.
func TestLargeFences(t *testing.T) {
	h := alone(t, Config{}, view.Use{Algorithm: "central"})
	h.spaces[0].base.Fence = fenceHigh
	if err := h.want("a/1"); err != nil {
		t.Fatal(err)
	}
	if o := h.Output(); len(o.Granted) != 1 || o.Turn != "large fences" {
		t.Errorf("%+v", o)
	}
	h.spaces[0].base.Fence = fenceBound
	func() {
		defer h.guard()
		_ = h.want("a/2")
	}()
	o := h.Output()
	var failed process.Violation
	if !errors.As(o.Err, &failed) || len(o.Granted) != 0 {
		t.Fatalf("after an assertion: %+v", o)
	}
	h.Tick(1e9)
	h.View(1e9, &Seen{})
	if err := h.Receive(1e9, 2, nil); err != nil || h.Output().Err != o.Err {
		t.Errorf("it goes on: %v", err)
	}
}

// What may guard names is what servers can run.
func TestMachines(t *testing.T) {
	var served []string
	for _, s := range algorithm.Served {
		served = append(served, s.Name)
	}
	slices.Sort(served)
	if may := version.Machines(version.Live); !slices.Equal(may, served) {
		t.Errorf("%v may guard names, %v are served", may, served)
	}
}

func TestCheck(t *testing.T) {
	for options, want := range map[string]string{
		"central ": "", "central coordinator=first,delay=1000,mode=deny-poll,section=1": "",
		"k-ricart-agrawala k=3": "", "majority replicas=5": "", "majority votes=16": "", "token-ring delta=500": "", " ": "",
		" k=3":                             "agreement has no options",
		"swim ":                            `"swim" is not an algorithm that servers run`,
		"central mode=deny-poll,delay=5":   "sorted by name",
		"central delay=5,delay=6":          "sorted by name",
		"central delay":                    "name=value",
		"central delay=0":                  "it must be a number from 1",
		"central coordinator=last":         "it must be one of [spread elected first]",
		"central k=3":                      `central has no option "k"`,
		"k-ricart-agrawala k=many":         "it must be a number",
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

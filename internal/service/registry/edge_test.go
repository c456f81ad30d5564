package registry

import (
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/access"

	"github.com/conclave-io/conclave/internal/service/version"
)

// A damaged count must not make Decode allocate more than the snapshot can contain. A
// server that restarts on such a file must report it, and not run out of memory.
func TestDamagedCountCostsNoMemory(t *testing.T) {
	const size = 8 << 20
	head := New().Freeze().Encode()
	head = head[:len(head)-3] // the counts of members, sessions and resources
	s := &session{id: SessionID{1}, party: new(party)}
	oneSession := (&sessionState{of: s}).append(binary.AppendUvarint(nil, 1))
	answers := append(append(head, 0), oneSession[:len(oneSession)-1]...)
	for name, prefix := range map[string][]byte{
		"members":   head,
		"sessions":  append(head[:len(head):len(head)], 0),
		"resources": append(head[:len(head):len(head)], 0, 0),
		"answers":   answers,
	} {
		t.Run(name, func(t *testing.T) {
			data := wire.AppendUint(prefix[:len(prefix):len(prefix)], size)
			data = append(data, make([]byte, size)...)
			for i := len(data) - size; i < len(data); i++ {
				data[i] = 0xff // no element can be read from these
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Decode(data)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), "damaged") {
				t.Fatalf("the damage went unnoticed: %v", err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
				t.Errorf("decoding allocated %d bytes before it gave up", used)
			}
		})
	}
}

// Snapshots whose parts can be decoded but contradict each other are refused.
func TestImpossibleSnapshots(t *testing.T) {
	tests := []struct {
		name   string
		damage func(r *Registry)
		want   string
	}{
		{"no epoch", func(r *Registry) { r.epoch = 0 }, "epoch"},
		{"epoch over 23 bits", func(r *Registry) { r.epoch = 1 << 23 }, "epoch"},
		{"counter past its turn", func(r *Registry) { r.counter = counterTurn }, "counter"},
		{"fence from the future", func(r *Registry) { held(r).fence = 1<<counterBits | 99 }, "above the newest"},
		{"fence given twice", func(r *Registry) {
			again := *held(r)
			again.sequence = 77
			held(r).resource.admit(&again)
			again.session.claims.put(&again)
			held(r).resource.limit = 2
		}, "after"},
		{"holder over the limit", func(r *Registry) { held(r).resource.limit = 0 }, "limit"},
		{"nobody holds", func(r *Registry) { held(r).resource.one[0] = nil }, "nobody holds"},
		{"answers out of order", func(r *Registry) {
			s := r.sessions[sessionNamed("a")]
			s.answers[0], s.answers[1] = s.answers[1], s.answers[0]
		}, "answer"},
		{"answer below the low mark", func(r *Registry) { r.sessions[sessionNamed("a")].low = 2 }, "answer"},
		{"unknown class", func(r *Registry) { held(r).resource.class = classes }, "class"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := New()
			applyAll(r, open("a"), acquire("a", 1, "n"), acquire("a", 2, "m"))
			if _, err := Decode(r.Freeze().Encode()); err != nil {
				t.Fatalf("the sound one is refused: %v", err)
			}
			test.damage(r)
			r.frozen = nil
			_, err := Decode(r.Freeze().Encode())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %v, want one that says %q", err, test.want)
			}
		})
	}
}

// A damaged snapshot that lists a resource or a session twice is refused, so that the
// first one is not silently lost.
func TestDuplicatesInSnapshots(t *testing.T) {
	r := New()
	applyAll(r, open("a"), acquire("a", 1, "n"))
	head := New().Freeze().Encode()
	head = head[:len(head)-4] // without the members, sessions, resources and the past
	head = append(head, 0)
	head[4] = 1 // the counter: one fence is given
	s := r.sessions[sessionNamed("a")]
	res := r.resources.get(key{Lock, "n"})
	for name, counts := range map[string][2]int{"sound": {1, 1}, "session": {2, 0}, "resource": {1, 2}} {
		t.Run(name, func(t *testing.T) {
			data := wire.AppendUint(head[:len(head):len(head)], uint64(counts[0]))
			for range counts[0] {
				data = s.append(data)
			}
			data = wire.AppendUint(data, uint64(counts[1]))
			for range counts[1] {
				data = res.append(data)
			}
			data = append(data, 0) // no past
			if _, err := Decode(data); (err == nil) != (name == "sound") {
				t.Fatalf("error %v", err)
			}
		})
	}
}

func TestVersionsAreRefused(t *testing.T) {
	snapshot := atLevel(version.Max).Freeze().Encode()
	snapshot[0]++
	if _, err := Decode(snapshot); err == nil || !strings.Contains(err.Error(), "install a newer release") {
		t.Errorf("a snapshot of the next version: %v", err)
	}
	entry := (&Batch{}).Append(nil, version.Max)
	entry[0]++
	if _, err := DecodeBatch(entry); err == nil || !strings.Contains(err.Error(), "install a newer release") {
		t.Errorf("a log entry of the next version: %v", err)
	}
}

// Every prefix of what is written is damaged.
func TestTruncation(t *testing.T) {
	r := New()
	applyAll(r, open("a"), open("b"), acquire("a", 1, "n"), acquire("b", 1, "n"), Command{Op: OpMember, Member: &Member{ID: 1, UID: 2}})
	snapshot := r.Freeze().Encode()
	for n := range snapshot {
		if _, err := Decode(snapshot[:n]); err == nil {
			t.Errorf("the first %d of %d bytes of a snapshot pass", n, len(snapshot))
		}
	}
	entry := (&Batch{Time: 1, Commands: everyCommand()}).Append(nil, version.Access)
	for n := range entry {
		if _, err := DecodeBatch(entry[:n]); err == nil {
			t.Errorf("the first %d of %d bytes of an entry pass", n, len(entry))
		}
	}
}

func held(r *Registry) *claim { return r.resources.get(key{Lock, "n"}).holders()[0] }

func open(name string) Command {
	return Command{Op: OpOpen, Session: sessionNamed(name), Sequence: 1, TTL: 10e9}
}

func acquire(name string, sequence uint64, resource string) Command {
	return Command{Op: OpAcquire, Session: sessionNamed(name), Sequence: sequence, Name: resource}
}

// applyAll applies commands in one entry of term 1.
func applyAll(r *Registry, commands ...Command) Effects {
	var fx Effects
	r.Apply(1, &Batch{Commands: commands}, &fx)
	return fx
}

// atLevel returns the state at a level before the first entry.
func atLevel(level uint32) *Registry {
	r := New()
	applyAll(r, Command{Op: OpLevel, From: 1, To: level})
	return r
}

// everyCommand returns one command of each operation, all fields set.
func everyCommand() []Command {
	a, b := sessionNamed("a"), sessionNamed("b")
	verdicts := []Verdict{{a, 3, -4}, {b, 1 << 60, 1 << 60}}
	return []Command{
		{Op: OpOpen, Session: a, Sequence: 1, Low: 1, TTL: 10e9, Host: "east", PID: -7, Program: "nightly"},
		{Op: OpRenew, Session: a, Sequence: 2, Low: 1},
		{Op: OpAcquire, Session: a, Sequence: 3, Low: 2, Class: Election, Name: "chief", Try: true, Limit: 1, Value: "v"},
		{Op: OpUpdate, Session: a, Sequence: 4, Hold: 3, Value: "w"},
		{Op: OpCancel, Session: a, Sequence: 5, Hold: 3},
		{Op: OpRelease, Session: a, Sequence: 6, Hold: 3},
		{Op: OpClose, Session: a, Sequence: 1 << 63},
		{Op: OpExpire, Term: 1 << 40, Verdicts: verdicts},
		{Op: OpSilence, Term: 1, Verdicts: verdicts},
		{Op: OpMember, Member: &Member{ID: 1, UID: 1<<64 - 1}},
		{Op: OpAcquire, Session: a, Sequence: 7, Name: "n", Shared: true, Keeps: []Kept{{Election, "chief", 1 << 40}, {Lock, "m", 3}}},
		{Op: OpAcquire, Session: a, Sequence: 8, Class: Election, Name: "chief", Priority: -5, Patience: 3e9},
		{Op: OpRevoke, Session: a, Sequence: 9, Class: Election, Name: "chief", Fence: 1 << 40, Value: "why"},
		{Op: OpTransfer, Session: a, Sequence: 10, Hold: 3, Value: "heir"},
		{Op: OpDrop, Term: 3, Claims: []ClaimID{{a, 3}, {b, 1 << 63}}},
		{Op: OpOvertake, Class: Election, Name: "chief"},
		{Op: OpEnd, Session: a, Value: "why", By: &Origin{Actor: "cert:ops", Via: "http", Remote: "10.0.0.9:5", Request: [16]byte{15: 9}}},
		{Op: OpEnter, Session: SessionID{15: 1}, Sequence: 1, Low: 1, TTL: 12e8, Host: "east", PID: 7, Guarding: &Guarding{Server: 1}},
		{Op: OpTurn, Session: SessionID{15: 1}, Sequence: 2, Value: "why", Guarding: &Guarding{Epoch: 2, Coordinator: 1}},
		{Op: OpQuiet, Session: SessionID{15: 1}, Sequence: 3, Low: 2, Guarding: &Guarding{Epoch: 3, Change: 1}},
		{Op: OpClose, Session: SessionID{15: 1}, Sequence: 4, Guarding: &Guarding{Heir: view.Seat{Server: 2, ID: [2]uint64{3, 4}}}},
		{Op: OpGuard, Name: "n", Value: "why", Guarding: &Guarding{Use: view.Use{Algorithm: "k-ricart-agrawala", Options: "k=3"}, Wait: 30e9, Force: true}, By: &Origin{Actor: "cert:ops"}},
		{Op: OpGuard, Name: "n", Guarding: &Guarding{Remove: true}},
		{Op: OpGuard, Name: "n", Guarding: &Guarding{Change: 1 << 40}},
		{Op: OpGuard, Class: View, Value: "why", Guarding: &Guarding{Use: view.Use{Algorithm: "swim+bully", Options: "delay=20000"}}, By: &Origin{Actor: "cert:ops"}},
		ruling(1, role("x", "allow hold on prefix x/"), bind("cert:a", "x"), quota("", "x/", access.Amount{Claims: 3})),
		{Op: OpNote, Name: "backup", Value: "why", By: &Origin{Actor: "cert:ops", Request: [16]byte{15: 8}}},
	}
}

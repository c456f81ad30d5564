package process_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/process"
)

// pair is an element of a list in a state.
type pair struct {
	id process.ID
	n  uint64
}

// album is a machine with one field of every kind.
type album struct {
	n int

	on     bool
	diff   int64
	tries  int
	clock  uint64
	seq    uint64
	fence  process.Fence
	term   process.Term
	leader process.ID
	queue  []process.ID
	voted  process.Set
	last   []uint64
	list   []uint64
	data   []byte
	stamp  process.Stamp
	held   process.Message
	phase  uint8
	pairs  []pair
}

var albumPhases = []string{"IDLE", "WAIT"}

func newAlbum() *album {
	return &album{n: 3, voted: process.NewSet(3), last: make([]uint64, 3)}
}

func fullAlbum() *album {
	m := newAlbum()
	m.on, m.diff, m.tries, m.clock, m.seq = true, -7, 2, 9, 4
	m.fence, m.term, m.leader = 12, process.MakeTerm(2, 1), process.None
	m.queue, m.list, m.data = []process.ID{2, 0}, []uint64{5, 1 << 40}, []byte("abc")
	m.voted.Add(2)
	m.last[1] = 8
	m.stamp = process.Stamp{Clock: 3, ID: 1}
	m.held = process.Message{Type: 1, From: 1, To: 2, Clock: 6}
	m.phase, m.pairs = 1, []pair{{1, 2}, {process.None, 3}}
	return m
}

func (m *album) Step(*process.Event, *process.Effects) {}

func (m *album) Fields(f *process.Fields) {
	f.Durable().Bool("on", &m.on)
	f.Int("diff", &m.diff)
	f.Count("tries", &m.tries)
	f.Clock("clock", &m.clock)
	f.Seq("seq", &m.seq)
	f.Fence("fence", &m.fence)
	f.Durable().Term("term", &m.term)
	f.ID("leader", &m.leader)
	f.IDs("queue", &m.queue)
	f.Set("voted", m.voted)
	f.Clocks("last", m.last)
	f.Uints("list", &m.list)
	f.Bytes("data", &m.data)
	f.Stamp("stamp", &m.stamp)
	f.Message("held", &m.held)
	process.Enum(f, "phase", &m.phase, albumPhases)
	process.List(f.Durable(), "pairs", &m.pairs, pairFields)
}

func pairFields(f *process.Fields, e *pair) {
	f.ID("id", &e.id)
	f.Uint("n", &e.n)
}

var albums = cmp.AllowUnexported(album{}, pair{})

func TestStateIsRestored(t *testing.T) {
	m, copied := fullAlbum(), newAlbum()
	if err := process.DecodeState(process.AppendState(nil, m), copied, 3); err != nil {
		t.Fatal(err)
	}
	copied.held.Vector, copied.held.IDs, copied.held.Data = nil, nil, nil
	if d := cmp.Diff(m, copied, albums); d != "" {
		t.Error(d)
	}
	if process.Hash(m) != process.Hash(copied) {
		t.Error("equal states have different hashes")
	}
	copied.pairs[1].n++
	if process.Hash(m) == process.Hash(copied) {
		t.Error("different states have one hash")
	}
}

func TestDurableFieldsAreRestored(t *testing.T) {
	m, fresh := fullAlbum(), newAlbum()
	if err := process.DecodeDurable(process.AppendDurable(nil, m), fresh, 3); err != nil {
		t.Fatal(err)
	}
	want := newAlbum()
	want.on, want.term, want.pairs = m.on, m.term, m.pairs
	if d := cmp.Diff(want, fresh, albums); d != "" {
		t.Error(d)
	}
}

func TestDecodeStateRefuses(t *testing.T) {
	state := process.AppendState(nil, fullAlbum())
	for end := range state {
		if err := process.DecodeState(state[:end], newAlbum(), 3); err == nil {
			t.Errorf("the first %d of %d bytes were accepted", end, len(state))
		}
	}
	if err := process.DecodeState(append(state, 0), newAlbum(), 3); err == nil {
		t.Error("a byte too many was accepted")
	}
	if err := process.DecodeState(state, newAlbum(), 2); err == nil {
		t.Error("a state of three processes was accepted among two")
	}
}

func TestViewAndDiff(t *testing.T) {
	c := &process.Config{N: 3, Labels: []process.Label{10, 20, 30}}
	before := process.View(newAlbum(), c)
	changes := process.Diff(before, process.View(fullAlbum(), c))
	got := map[string]any{}
	for _, change := range changes {
		got[change.Name] = change.After
	}
	for name, want := range map[string]any{
		"on": true, "diff": int64(-7), "clock": uint64(9), "fence": uint64(12), "term": uint64(2),
		"leader": "-", "queue": []string{"30", "10"}, "voted": []string{"30"}, "last": []uint64{0, 8, 0},
		"stamp": "(3,20)", "phase": "WAIT", "pairs": []string{"(20,2)", "(-,3)"},
	} {
		if d := cmp.Diff(want, got[name]); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if len(process.Diff(before, before)) > 0 {
		t.Error("a state differs from itself")
	}
}

func TestMarks(t *testing.T) {
	m := fullAlbum()
	base := process.HighWater(m)
	if base.Clock != 9 || base.Fence != 12 {
		t.Errorf("high water is %+v, want clock 9 and fence 12", base)
	}
	process.Marks(m, func(role process.Role, p *uint64) {
		if role == process.RoleClock {
			*p += 100
		}
	})
	if m.clock != 109 || m.last[1] != 108 || m.stamp.Clock != 103 || m.held.Clock != 106 {
		t.Errorf("not every clock was shifted: %+v", m)
	}
}

func TestCopyingStateDoesNotAllocate(t *testing.T) {
	m, copied := fullAlbum(), newAlbum()
	var f process.Fields
	var buf []byte
	allocs := testing.AllocsPerRun(100, func() {
		buf = f.Append(buf[:0], m)
		if err := f.Decode(buf, copied, 3); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("copying a state allocates %v times", allocs)
	}
}

// FuzzState: for any input, decoding returns an error, or a state whose encoding decodes
// to the same state.
func FuzzState(f *testing.F) {
	f.Add(process.AppendState(nil, newAlbum()))
	f.Add(process.AppendState(nil, fullAlbum()))
	f.Fuzz(func(t *testing.T, src []byte) {
		m, again := newAlbum(), newAlbum()
		if process.DecodeState(src, m, 3) != nil {
			return
		}
		state := process.AppendState(nil, m)
		if err := process.DecodeState(state, again, 3); err != nil {
			t.Fatalf("%+v cannot be read back: %v", m, err)
		}
		if !bytes.Equal(state, process.AppendState(nil, again)) {
			t.Errorf("%+v became %+v", m, again)
		}
	})
}

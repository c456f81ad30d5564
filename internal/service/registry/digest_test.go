package registry

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/conclave-io/conclave/internal/service/version"
)

// The digest does not depend on when it, or a version, is read. All servers that apply
// the same log have the same digest, even if some start from a snapshot.
func TestDigestWhenever(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var servers [4]*Registry
		for i := range servers {
			servers[i] = New()
		}
		log := rapid.SliceOfN(rapid.Custom(drawBatch), 1, 40).Draw(t, "log")
		for i := range log {
			for _, r := range servers {
				r.Apply(uint64(i)/8, &log[i], new(Effects))
			}
			servers[1].Digest() // the first is asked at the end only
			asked := &servers[2]
			switch rapid.IntRange(0, 4).Draw(t, "ask") {
			case 0:
				(*asked).Digest()
			case 1:
				(*asked).Freeze()
			case 2:
				*asked = throughSnapshot(t, *asked)
			}
			servers[3].Freeze()
		}
		for i, r := range servers {
			if r.Digest() != servers[0].Digest() {
				t.Fatalf("the digest of server %d is %x, not %x", i, r.Digest(), servers[0].Digest())
			}
		}
		requireCounted(t, servers[0])
	})
}

// manyClients returns many sessions that claim many names, a few of these repeatedly.
type manyClients struct {
	*rand.Rand
	next [400]uint64 // the number of the next request, or 0 without a session
}

func (m *manyClients) command() Command {
	who := m.IntN(len(m.next))
	id, sequence := numbered(who), m.next[who]
	if sequence == 0 {
		m.next[who] = 1
		return Command{Op: OpOpen, Session: id, Sequence: 1, TTL: 10e9, Host: "host"}
	}
	m.next[who]++
	name, hold := fmt.Sprintf("n%d", m.IntN(300)), sequence-min(sequence, m.Uint64N(4))
	if m.IntN(2) == 0 {
		name = fmt.Sprintf("n%d", m.IntN(2))
	}
	c := Command{Op: OpAcquire, Session: id, Sequence: sequence, Low: sequence - m.Uint64N(2), Name: name, Shared: m.IntN(3) == 0}
	switch kind := m.IntN(200); {
	case kind < 2:
		m.next[who] = 0
		return Command{Op: OpClose, Session: id, Sequence: sequence}
	case kind < 4:
		m.next[who] = 0
		return Command{Op: OpEnd, Session: id, Value: "why"}
	case kind < 10:
		c.Op, c.Value = OpRevoke, "why"
	case kind < 40:
		c.Class, c.Shared, c.Priority, c.Value = Election, false, m.Int64N(3), "v"
	case kind < 80:
		c = Command{Op: OpTransfer, Session: id, Sequence: sequence, Low: sequence, Hold: sequence - min(sequence, m.Uint64N(20)), Value: "v"}
	case kind < 140:
		c = Command{Op: []Op{OpRelease, OpRelease, OpRelease, OpCancel, OpUpdate}[kind%5], Session: id, Sequence: sequence, Low: sequence, Hold: hold}
	}
	return c
}

// expiry ends most of the sessions, and drops what is revoked.
func (m *manyClients) expiry(r *Registry) []Command {
	c := Command{Op: OpExpire, Term: 1}
	for who := range m.next {
		if s, open := r.Session(numbered(who)); open && who%8 > 0 {
			c.Verdicts = append(c.Verdicts, Verdict{Session: s.ID, Renewals: s.Renewals})
			m.next[who] = 0
		}
	}
	revoked, _ := r.Revoked()
	return []Command{{Op: OpDrop, Term: 1, Claims: revoked}, c}
}

// The same holds with many sessions and names, where changes are added to the digest
// before it is read. At most the bound, plus the changes of one entry, are pending.
func TestDigestOfMany(t *testing.T) {
	const rounds = 10_000
	m := manyClients{Rand: rand.New(rand.NewPCG(1, 2))}
	asked, other := New(), New()
	transferred := 0
	for i := range rounds {
		var batch Batch
		for range m.IntN(6) {
			batch.Commands = append(batch.Commands, m.command())
		}
		if i%3000 == 2999 {
			batch.Commands = append(batch.Commands, m.expiry(asked)...)
		}
		var fx Effects
		asked.Apply(1, &batch, &fx)
		other.Apply(1, &batch, new(Effects))
		for _, o := range fx.Outcomes {
			if strings.HasPrefix(o.Result.Message, "it hands over") {
				transferred++
			}
		}
		if asked.changed.len() >= mostChanges+12 {
			t.Fatalf("%d changes wait", asked.changed.len())
		}
		if m.IntN(50) == 0 {
			asked.Digest()
		}
		if m.IntN(150) == 0 {
			requireCounted(t, asked)
			requireSound(t, asked)
		}
		if i%1000 == 999 && other.Digest() != asked.Digest() {
			t.Fatalf("asked again and again, the digest is %x; asked once in a while, %x", asked.Digest(), other.Digest())
		}
	}
	if c := asked.Counts(); c.Locks < 50 || c.Waiters < 50 || c.Elections == 0 || transferred < 10 {
		t.Errorf("too little is there to compare: %+v, %d transfers", c, transferred)
	}
	if !bytes.Equal(asked.Freeze().Encode(), other.Freeze().Encode()) {
		t.Error("the states differ")
	}
	requireCounted(t, other)
}

// What comes and changes, or is gone again, before anybody asks.
func TestDigestOfOneEntry(t *testing.T) {
	candidate := func(id string, sequence uint64, priority int64) Command {
		return Command{Op: OpAcquire, Session: sessionNamed(id), Sequence: sequence, Class: Election, Name: "e", Value: id, Priority: priority}
	}
	var turns []Command
	for i := range uint64(3 * MaxPast) {
		turns = append(turns, acquire("a", 2*i+2, "n"), release("a", 2*i+3, 2*i+2))
	}
	for what, commands := range map[string][]Command{
		"more endings than are kept":   turns,
		"a waiter is preferred":        {candidate("a", 1, 0), candidate("b", 1, 0), candidate("c", 1, 0), {Op: OpTransfer, Session: sessionNamed("a"), Sequence: 2, Hold: 1, Value: "c"}},
		"a waiter goes before another": {candidate("a", 1, 0), candidate("b", 1, 0), candidate("c", 1, 1)},
		"a waiter cancels":             {acquire("a", 1, "n"), acquire("b", 1, "n"), acquire("c", 1, "n"), {Op: OpCancel, Session: sessionNamed("c"), Sequence: 2, Hold: 1}},
		"a waiter is granted":          {acquire("a", 1, "n"), acquire("b", 1, "n"), acquire("c", 1, "n"), release("a", 2, 1)},
		"a waiter closes":              {acquire("a", 1, "n"), acquire("b", 1, "n"), acquire("c", 1, "n"), {Op: OpClose, Session: sessionNamed("b"), Sequence: 2}},
		"a waiter is ended":            {acquire("a", 1, "n"), acquire("b", 1, "n"), acquire("c", 1, "n"), {Op: OpEnd, Session: sessionNamed("b")}},
		"a lock with another limit":    {acquire("a", 1, "n"), release("a", 2, 1), {Op: OpAcquire, Session: sessionNamed("b"), Sequence: 1, Name: "n", Limit: 3}},
	} {
		for cut := range commands { // somebody asks in between
			r := New()
			applyAll(r, open("a"), open("b"), open("c"))
			applyAll(r, commands[:cut]...)
			r.Digest()
			applyAll(r, commands[cut:]...)
			if again, err := Decode(r.Freeze().Encode()); err != nil || r.Digest() != again.Digest() {
				t.Errorf("%s, asked after %d commands: the digest is kept as %x, a recount says %x: %v", what, cut, r.Digest(), again.Digest(), err)
			}
		}
	}
}

// A digest depends on everything in a snapshot. If a bit is flipped, the snapshot is
// invalid, or means the same, or has another digest.
func TestDigestTellsStatesApart(t *testing.T) {
	r := New()
	for _, batch := range history() {
		r.Apply(3, &batch, new(Effects))
	}
	encoded, sound := r.Freeze().Encode(), 0
	for i := range encoded {
		for bit := range 8 {
			flipped := bytes.Clone(encoded)
			flipped[i] ^= 1 << bit
			other, err := Decode(flipped)
			if err != nil || bytes.Equal(other.Freeze().Encode(), encoded) {
				continue
			}
			if sound++; other.Digest() == r.Digest() {
				t.Errorf("bit %d of byte %d is not in the digest", bit, i)
			}
		}
	}
	if sound < 2000 {
		t.Errorf("only %d of %d other states are sound: the test proves little", sound, 8*len(encoded))
	}
}

// Processes draw different seeds for their tables, but have the same digest and snapshot.
func TestDigestHasNoSeed(t *testing.T) {
	mine, drawn := seed, salt
	defer func() { seed, salt = mine, drawn }()
	rapid.Check(t, func(t *rapid.T) {
		log := rapid.SliceOfN(rapid.Custom(drawBatch), 1, 40).Draw(t, "log")
		var digests [2]uint64
		var states [2][]byte
		for i := range digests {
			seed, salt = maphash.MakeSeed(), rand.Uint64()
			r := atLevel(version.Guarded) // with what waiters keep
			for i := range log {
				r.Apply(uint64(i)/8, &log[i], new(Effects))
			}
			fx := applyAll(r, open("seed"), acquire("seed", 2, "past"), release("seed", 3, 2), open("else"), acquire("else", 2, "held"), acquire("seed", 4, "kept"))
			wait := acquire("seed", 5, "held")
			wait.Keeps = []Kept{{Name: "kept", Fence: fx.Outcomes[len(fx.Outcomes)-1].Result.Fence}}
			applyAll(r, wait)
			digests[i], states[i] = r.Digest(), r.Freeze().Encode()
		}
		if digests[0] != digests[1] || !bytes.Equal(states[0], states[1]) {
			t.Fatalf("two processes have the digests %x and %x", digests[0], digests[1])
		}
	})
}

// The incrementally updated size equals the size that decoding computes.
func TestSizeIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := New()
		for i, batch := range rapid.SliceOfN(rapid.Custom(drawBatch), 1, 40).Draw(t, "log") {
			r.Apply(uint64(i)/8, &batch, new(Effects))
		}
		requireCounted(t, r)
	})
}

// fatal is what a test and a property have in common.
type fatal interface{ Fatalf(string, ...any) }

// requireCounted checks the size against a recount, and returns the encoding.
func requireCounted(t fatal, r *Registry) []byte {
	encoded := r.Freeze().Encode()
	again, err := Decode(encoded)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if r.Size() != again.Size() {
		t.Fatalf("the size is kept as %d, a recount says %d", r.Size(), again.Size())
	}
	if r.Digest() != again.Digest() {
		t.Fatalf("the digest is kept as %x, a recount says %x", r.Digest(), again.Digest())
	}
	return encoded
}

// requireSize checks the size also against the encoding: it is never smaller, and
// twice as large at most.
func requireSize(t fatal, r *Registry) {
	if n := len(requireCounted(t, r)); r.Size() < n || r.Size() > 2*n {
		t.Fatalf("the size is said to be %d, the encoding has %d bytes", r.Size(), n)
	}
}

// Large states with many objects of one type each, and what remains after all are
// released.
func TestSizeFollowsTheEncoding(t *testing.T) {
	const many = 2000
	value := strings.Repeat("v", 5000)
	for what, fill := range map[string]func(i int) []Command{
		"sessions": func(i int) []Command { return []Command{open(fmt.Sprint(i))} },
		"locks":    func(i int) []Command { return []Command{acquire("a", uint64(i+1), fmt.Sprint("lock-", i))} },
		"waiters":  func(i int) []Command { return []Command{acquire("a", uint64(i+1), "x")} },
		"values": func(i int) []Command {
			return []Command{{Op: OpAcquire, Session: sessionNamed("a"), Sequence: uint64(i + 1), Low: uint64(i + 1), Class: Election, Name: fmt.Sprint(i), Value: value}}
		},
		"past": func(i int) []Command {
			return []Command{acquire("a", uint64(2*i+1), fmt.Sprint(i)), {Op: OpRelease, Session: sessionNamed("a"), Sequence: uint64(2*i + 2), Low: uint64(2*i + 2), Hold: uint64(2*i + 1)}}
		},
	} {
		t.Run(what, func(t *testing.T) {
			r, now := New(), int64(1.8e18)
			r.Apply(1, &Batch{Time: now, Wall: now, Commands: []Command{open("a")}}, new(Effects))
			empty := r.Size()
			for i := range many {
				for _, c := range fill(i) {
					c.Low = max(c.Low, c.Sequence)
					now += 1e6
					r.Apply(1, &Batch{Time: now, Wall: now, Commands: []Command{c}}, new(Effects))
				}
			}
			requireSize(t, r)
			if r.Size() < empty+1000*40 {
				t.Errorf("%d bytes with, %d without", r.Size(), empty)
			}
			if err := r.Refound(0); err != nil {
				t.Fatal(err)
			}
			requireCounted(t, r)
		})
	}
}

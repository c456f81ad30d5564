package registry

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// When the digest and versions are asked for decides nothing: of servers that apply
// the same log, some after a snapshot, all come to the same digest.
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

// So it is with many sessions and names, where changes are folded in before anybody
// asks: no more of them wait than the most there may be, and those of one entry.
func TestDigestOfMany(t *testing.T) {
	const sessions, rounds = 400, 7000
	random := rand.New(rand.NewPCG(1, 2))
	asked, other := New(), New()
	next, renewals := make([]uint64, sessions), uint64(0)
	for i := range rounds {
		var batch Batch
		for range random.IntN(5) {
			who := random.IntN(sessions)
			c := Command{Op: OpAcquire, Session: numbered(who), Sequence: next[who], Low: max(1, next[who]) - random.Uint64N(2), Name: fmt.Sprintf("lock/%d", random.IntN(300)), Shared: random.IntN(3) == 0}
			switch kind := random.IntN(12); {
			case next[who] == 0:
				c = Command{Op: OpOpen, Session: numbered(who), Sequence: 1, TTL: 10e9, Host: "host"}
				next[who] = 1
			case kind == 1:
				if random.IntN(8) == 0 {
					c = Command{Op: OpClose, Session: numbered(who), Sequence: next[who]}
					next[who] = 0
				}
			case kind == 0:
				c.Class, c.Shared, c.Priority = Election, false, random.Int64N(3)
			case kind < 7:
				c.Op, c.Hold = []Op{OpRelease, OpRelease, OpCancel, OpRevoke, OpUpdate}[kind-2], next[who]-min(next[who], random.Uint64N(4))
			}
			if next[who] > 0 {
				next[who]++
			}
			batch.Commands = append(batch.Commands, c)
		}
		if i%2000 == 1999 { // many at once
			expiry := Command{Op: OpExpire, Term: 1}
			for n := range sessions {
				if s := asked.sessions[numbered(n)]; s != nil && n%8 > 0 {
					expiry.Leases = append(expiry.Leases, Lease{Session: s.id, Renewals: s.renewals})
					next[n] = 0
				}
			}
			batch.Commands = append(batch.Commands, expiry)
		}
		asked.Apply(1, &batch, new(Effects))
		other.Apply(1, &batch, new(Effects))
		if asked.changed.len() >= mostChanges+10 {
			t.Fatalf("%d changes wait", asked.changed.len())
		}
		if random.IntN(50) == 0 {
			asked.Digest()
		}
		if random.IntN(100) == 0 {
			requireCounted(t, asked)
			requireSound(t, asked)
		}
		renewals = max(renewals, asked.renewals)
	}
	if counts := asked.Counts(); counts.Locks < 50 || counts.Waiters < 50 || counts.Sessions < 200 || counts.Elections == 0 || renewals < sessions {
		t.Errorf("too little is left to compare: %+v", counts)
	}
	if asked.Digest() != other.Digest() || !bytes.Equal(asked.Encode(), other.Encode()) {
		t.Errorf("asked again and again, the digest is %x; asked once, %x", asked.Digest(), other.Digest())
	}
	requireCounted(t, other)
}

// A digest depends on all that a snapshot has: whichever bit is another one, the
// snapshot is damaged, or means the same, or the digest is another one too.
func TestDigestTellsStatesApart(t *testing.T) {
	r := New()
	for _, batch := range history() {
		r.Apply(3, &batch, new(Effects))
	}
	encoded, sound := r.Encode(), 0
	for i := range encoded {
		for bit := range 8 {
			flipped := bytes.Clone(encoded)
			flipped[i] ^= 1 << bit
			other, err := Decode(flipped)
			if err != nil || bytes.Equal(other.Encode(), encoded) {
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

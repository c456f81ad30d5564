package store

import (
	"bytes"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// script draws from a seed what a member saves next, depending on what its directory has.
// It knows what must be durable after each save.
type script struct {
	chance *rand.Rand
	now    *State            // what is durable
	hard   *raftpb.HardState // with a commit index that may be lost
}

// step is what is given to one Save.
type step struct {
	hs       *raftpb.HardState
	entries  []*raftpb.Entry
	snapshot *raftpb.Snapshot
	ahead    bool // the file of the snapshot is written before
	sync     bool
}

func newScript(seed uint64, from *State) *script {
	x := &script{chance: rand.New(rand.NewPCG(seed, 6)), hard: hard(0, 0, 0)}
	if from.HardState != nil {
		x.hard = from.HardState
	}
	now := *from
	now.Entries = slices.Clone(from.Entries)
	x.now = &now
	return x
}

// states returns what is durable at the beginning, and after each save.
func (x *script) states() []*State {
	list := []*State{x.now}
	for range savesEach {
		x.next()
		list = append(list, x.now)
	}
	return list
}

func (x *script) save(t testing.TB, s *Store) {
	t.Helper()
	mustDo(t, s, x.next())
}

func mustDo(t testing.TB, s *Store, do step) {
	t.Helper()
	if err := do.save(s); err != nil {
		t.Fatal(err)
	}
}

// save makes the save.
func (do *step) save(s *Store) error {
	if do.ahead {
		if err := s.WriteSnapshot(do.snapshot); err != nil {
			return err
		}
	}
	return s.Save(do.hs, do.entries, do.snapshot, do.sync)
}

func (x *script) first() uint64 { return x.now.Snapshot.GetMetadata().GetIndex() + 1 }
func (x *script) last() uint64  { return x.first() - 1 + uint64(len(x.now.Entries)) }

// next draws a save.
func (x *script) next() step {
	term, commit := x.hard.GetTerm(), x.hard.GetCommit()
	switch n := x.chance.IntN(16); {
	case x.now.Fresh:
		return x.take(step{snapshot: snapshotAt(1, 1, "boot")})
	case n < 2: // a vote
		return x.take(step{hs: hard(term+1, x.chance.Uint64N(3), commit)})
	case n < 5 && commit < x.last(): // only the commit index moves
		x.hard = hard(term, x.hard.GetVote(), x.below(commit, x.last()))
		return step{hs: x.hard}
	case n < 7 && commit < x.last(): // another leader's entries in place of these
		return x.take(step{hs: hard(term+1, 0, commit), entries: x.draw(x.below(commit, x.last()), term+1)})
	case n < 9 && commit >= x.first(): // a snapshot of its own
		at := x.now.Entries[x.below(x.first()-1, commit)-x.first()]
		return x.take(step{snapshot: snapshotAt(at.GetIndex(), at.GetTerm(), string(x.bytes())), ahead: x.chance.IntN(2) == 0})
	case n < 11: // a snapshot of the leader
		at := commit + 1 + x.chance.Uint64N(12)
		do := step{hs: hard(term+1, 0, at), snapshot: snapshotAt(at, term+1, string(x.bytes()))}
		if x.chance.IntN(2) == 0 {
			do.entries = x.draw(at+1, term+1)
		}
		return x.take(do)
	}
	do := step{entries: x.draw(x.last()+1, term)}
	if x.chance.IntN(2) == 0 {
		do.hs = hard(term, x.hard.GetVote(), x.below(commit-1, x.last()))
	}
	return x.take(do)
}

// below draws a number above one and up to another.
func (x *script) below(above, to uint64) uint64 { return above + 1 + x.chance.Uint64N(to-above) }

func (x *script) draw(from, term uint64) []*raftpb.Entry {
	list := entries(from, from+x.chance.Uint64N(4), term, 0)
	for _, e := range list {
		e.Data = x.bytes()
	}
	return list
}

func (x *script) bytes() []byte {
	b := bytes.Repeat([]byte{byte(x.chance.IntN(3))}, x.chance.IntN(1<<(4+x.chance.IntN(8))))
	for i := range b {
		if b[i] > 0 {
			b[i] = byte(x.chance.IntN(256))
		}
	}
	return b
}

// take notes what a save makes durable.
func (x *script) take(do step) step {
	do.sync = true
	if do.hs != nil {
		x.hard = do.hs
	}
	now := &State{UID: x.now.UID, Snapshot: x.now.Snapshot, Entries: x.now.Entries}
	if snapshot := do.snapshot; snapshot != nil {
		at := positionOf(snapshot)
		if x.hard.GetTerm() == 0 {
			x.hard = hard(at.term, 0, at.index)
		}
		own := func(e *raftpb.Entry) bool { return e.GetIndex() == at.index && e.GetTerm() == at.term }
		i := slices.IndexFunc(now.Entries, own)
		now.Snapshot, now.Entries = snapshot, now.Entries[i+1:]
		if i < 0 {
			now.Entries = nil
		}
	}
	if len(do.entries) > 0 {
		kept := do.entries[0].GetIndex() - now.Snapshot.GetMetadata().GetIndex() - 1
		now.Entries = slices.Concat(now.Entries[:kept], do.entries)
	}
	if len(now.Entries) == 0 {
		now.Entries = nil
	}
	now.HardState = proto.Clone(x.hard).(*raftpb.HardState)
	x.now = now
	return do
}

const (
	savesEach     = 24 // of a process
	crashSegments = 8 << 10
)

const seedEnv = "CONCLAVE_STORE_TEST_SEED"

// saveScript saves what its seed says, and says so after each.
func saveScript(dir string, say func(string, ...any)) error {
	seed, err := strconv.ParseUint(os.Getenv(seedEnv), 10, 64)
	if err != nil {
		return err
	}
	wal.SegmentSizeBytes = crashSegments
	reachedEvery = time.Millisecond // at almost every save, so that it is one of the things that a crash may leave
	s, state, err := Open(dir, testID, quiet)
	if err != nil {
		return err
	}
	say("opened")
	x := newScript(seed, state)
	for n := range savesEach {
		do := x.next()
		if err := do.save(s); err != nil {
			return err
		}
		say("saved %d", n)
	}
	return nil // it ends without a word, and what it kept in memory is lost
}

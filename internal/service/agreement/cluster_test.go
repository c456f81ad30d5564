package agreement

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// cluster hosts members on a simulated network and simulated disks. Every step is a call,
// so a sequence of calls and a seed determine the history.
type cluster struct {
	t       *testing.T
	cfg     Config
	chance  *rand.Rand
	members map[uint64]*member
	network []*raftpb.Message
	cut     map[[2]uint64]bool // links that lose everything

	// agreed has the entry that was first applied at each index, and the state after it.
	agreed map[uint64][32]byte
	newest uint64
	trace  hash.Hash
	counts map[string]int // how often a schedule reached an interesting state
}

// member is a Core with its disk and its state machine, which is a hash over
// all it applied.
type member struct {
	id     uint64
	core   *Core // nil while the member is down
	disk   Disk  // what is durable
	saves  []*Save
	loose  []*Save // written, and lost by a crash
	state  [32]byte
	index  uint64
	reads  map[uint64]uint64 // ticket to the newest index applied when it was drawn
	opened map[uint64]uint64 // ticket to the term it was drawn in
	done   []Read
	values []string
}

func newCluster(t *testing.T, seed uint64, cfg Config, ids ...uint64) *cluster {
	c := &cluster{
		t: t, cfg: cfg, chance: rand.New(rand.NewPCG(seed, 1)), members: map[uint64]*member{},
		cut: map[[2]uint64]bool{}, agreed: map[uint64][32]byte{}, trace: sha256.New(), counts: map[string]int{},
	}
	for _, id := range ids {
		c.members[id] = &member{id: id, disk: Disk{Snapshot: Bootstrap(ids, make([]byte, 32))}}
		c.start(id)
	}
	return c
}

func testConfig() Config { return Config{HeartbeatTicks: 1, ElectionTicks: 10, KeepEntries: -1} }

// ids returns the members in order, for a map's own order is chance.
func (c *cluster) ids() []uint64 { return slices.Sorted(maps.Keys(c.members)) }

func (c *cluster) note(format string, args ...any) { fmt.Fprintf(c.trace, format+"\n", args...) }

func (c *cluster) start(id uint64) {
	m := c.members[id]
	cfg := c.cfg
	cfg.ID = id
	core, err := New(cfg, m.disk)
	if err != nil {
		c.t.Fatalf("start member %d: %v", id, err)
	}
	m.core, m.saves, m.reads, m.opened = core, nil, map[uint64]uint64{}, map[uint64]uint64{}
	m.state, m.index = [32]byte{}, 0
	if m.disk.Snapshot != nil {
		m.install(m.disk.Snapshot)
	}
	c.note("start %d at %d", id, m.index)
}

// crash loses all that was not durable.
func (c *cluster) crash(id uint64) {
	c.note("crash %d", id)
	c.members[id].core, c.members[id].loose = nil, nil
}

// join starts a blank member.
func (c *cluster) join(id uint64) *member {
	c.members[id] = &member{id: id}
	c.start(id)
	return c.members[id]
}

func (m *member) install(s *raftpb.Snapshot) {
	copy(m.state[:], s.GetData())
	m.index = s.GetMetadata().GetIndex()
}

// drain does what every Ready asks for, except that saves stay undone.
func (c *cluster) drain(m *member) {
	for m.core != nil && m.core.HasReady() {
		rd := m.core.Ready()
		c.note("ready %d %v %d %d %s", m.id, rd.Role, rd.Term, rd.Leader, raft.DescribeEntries(rd.Committed, nil))
		c.send(rd.Send)
		if rd.Save != nil {
			m.saves = append(m.saves, rd.Save)
			c.note("save %d %v %s", m.id, rd.Save.MustSync, raft.DescribeEntries(rd.Save.Entries, nil))
		}
		c.apply(m, rd.Committed)
		c.finish(m, rd)
		if rd.WantSnapshot {
			c.snapshot(m)
		}
	}
}

func (c *cluster) send(messages []*raftpb.Message) {
	for _, message := range messages {
		c.note("%s", raft.DescribeMessage(message, nil))
		if message.GetType() == raftpb.MsgApp && len(message.GetEntries()) == 0 {
			c.counts["commit alone"]++
		}
		c.network = append(c.network, proto.Clone(message).(*raftpb.Message))
	}
}

// apply checks the main promise: no two members apply different entries, or reach
// different states, at one index.
func (c *cluster) apply(m *member, entries []*raftpb.Entry) {
	for _, e := range entries {
		if e.GetIndex() != m.index+1 {
			c.t.Fatalf("member %d applies entry %d after %d", m.id, e.GetIndex(), m.index)
		}
		if e.GetType() != raftpb.EntryNormal {
			if _, err := m.core.ApplyChange(e); err != nil {
				c.t.Fatal(err)
			}
		}
		b := append(m.state[:], e.GetData()...)
		m.state = sha256.Sum256(binary.BigEndian.AppendUint64(b, e.GetTerm()))
		m.index = e.GetIndex()
		if len(e.GetData()) > 0 && e.GetType() == raftpb.EntryNormal {
			m.values = append(m.values, string(e.GetData()))
		}
		c.agree(m)
	}
	m.core.Applied(entries)
}

func (c *cluster) agree(m *member) {
	if was, ok := c.agreed[m.index]; ok && was != m.state {
		c.t.Fatalf("member %d has another state than others at index %d", m.id, m.index)
	}
	c.agreed[m.index] = m.state
	c.newest = max(c.newest, m.index)
}

// finish checks that a read sees all that anyone had applied when it began.
func (c *cluster) finish(m *member, rd Ready) {
	for _, read := range rd.Reads {
		if read.Index < m.reads[read.Ticket] {
			c.t.Fatalf("read %d of member %d at index %d is older than index %d, which was applied before it began",
				read.Ticket, m.id, read.Index, m.reads[read.Ticket])
		}
		if rd.Role != Leader || m.opened[read.Ticket] != rd.Term {
			c.t.Fatalf("read %d of term %d completed in term %d as %v", read.Ticket, m.opened[read.Ticket], rd.Term, rd.Role)
		}
		delete(m.reads, read.Ticket)
		m.done = append(m.done, read)
		c.counts["read"]++
	}
}

func (c *cluster) read(m *member) (uint64, error) {
	ticket, err := m.core.ReadIndex()
	if err == nil {
		m.reads[ticket], m.opened[ticket] = c.newest, m.core.Status().Term
	}
	return ticket, err
}

// persist makes the oldest save durable and reports it.
func (c *cluster) persist(m *member) {
	save := m.saves[0]
	m.saves = m.saves[1:]
	m.loose = append(m.loose, save)
	if save.MustSync {
		for _, written := range m.loose {
			m.disk = saveTo(m.disk, written)
		}
		m.loose = nil
	}
	if save.Snapshot != nil {
		m.install(save.Snapshot)
		c.agree(m)
		c.counts["install"]++
	}
	c.note("saved %d", m.id)
	c.send(m.core.Saved(save))
}

func saveTo(disk Disk, save *Save) Disk {
	if save.HardState != nil {
		disk.HardState = save.HardState
	}
	if save.Snapshot != nil {
		disk.Snapshot, disk.Entries = save.Snapshot, nil
	}
	if len(save.Entries) > 0 {
		keep := save.Entries[0].GetIndex() - disk.Snapshot.GetMetadata().GetIndex() - 1
		disk.Entries = append(slices.Clone(disk.Entries[:keep]), save.Entries...)
	}
	return disk
}

// snapshot makes a durable snapshot of what the member has applied, and
// compacts.
func (c *cluster) snapshot(m *member) {
	s, err := m.core.CreateSnapshot(m.index, slices.Clone(m.state[:]))
	if err != nil {
		return
	}
	drop := m.index - m.disk.Snapshot.GetMetadata().GetIndex()
	if drop > uint64(len(m.disk.Entries)) {
		c.t.Fatalf("member %d has applied entry %d, which is not durable", m.id, m.index)
	}
	m.disk.Snapshot, m.disk.Entries = s, m.disk.Entries[drop:]
	m.disk.HardState = &raftpb.HardState{
		Term: new(m.disk.HardState.GetTerm()), Vote: new(m.disk.HardState.GetVote()), Commit: new(max(m.disk.HardState.GetCommit(), m.index)),
	}
	if err := m.core.Compact(m.index); err != nil {
		c.t.Fatal(err)
	}
	c.counts["snapshot"]++
	c.note("snapshot %d at %d", m.id, m.index)
}

// deliver delivers the message at an index of the network.
func (c *cluster) deliver(at int) {
	message := c.network[at]
	c.network = slices.Delete(c.network, at, at+1)
	to := c.members[message.GetTo()]
	if to == nil || to.core == nil || c.cut[[2]uint64{message.GetFrom(), message.GetTo()}] {
		if from := c.members[message.GetFrom()]; from != nil && from.core != nil && message.GetType() == raftpb.MsgSnap {
			from.core.ReportSnapshot(message.GetTo(), false)
		}
		return
	}
	if err := to.core.Receive(message); err != nil {
		c.note("refused: %v", err)
		c.counts["refused"]++
	}
	if from := c.members[message.GetFrom()]; from != nil && from.core != nil && message.GetType() == raftpb.MsgSnap {
		from.core.ReportSnapshot(message.GetTo(), true)
	}
	c.drain(to)
}

// settle runs everything that is under way to its end.
func (c *cluster) settle() {
	for busy := true; busy; {
		busy = false
		for _, id := range c.ids() {
			m := c.members[id]
			c.drain(m)
			for m.core != nil && len(m.saves) > 0 {
				c.persist(m)
				c.drain(m)
				busy = true
			}
		}
		for len(c.network) > 0 {
			c.deliver(0)
			busy = true
		}
	}
}

// run advances ticks until a condition holds, and fails the test if it never does.
func (c *cluster) run(what string, until func() bool) {
	c.t.Helper()
	for range 1000 {
		c.settle()
		if until() {
			return
		}
		for _, id := range c.ids() {
			if m := c.members[id]; m.core != nil {
				m.core.Tick()
			}
		}
	}
	c.t.Fatalf("never came about: %s", what)
}

func (c *cluster) leader() *member {
	var leader *member
	for _, id := range c.ids() {
		if m := c.members[id]; m.core != nil && m.core.Status().Role == Leader {
			if leader == nil || m.core.Status().Term > leader.core.Status().Term {
				leader = m
			}
		}
	}
	return leader
}

// elect waits for a leader that has committed an entry of its own.
func (c *cluster) elect() *member {
	c.t.Helper()
	c.run("a leader", func() bool { l := c.leader(); return l != nil && l.core.committedInTerm() })
	return c.leader()
}

func (c *cluster) isolate(id uint64, cut bool) {
	for other := range c.members {
		if other != id {
			c.cut[[2]uint64{id, other}], c.cut[[2]uint64{other, id}] = cut, cut
		}
	}
}

// propose proposes a value and waits until all members that are up and reachable have
// applied it.
func (c *cluster) propose(m *member, value string) {
	c.t.Helper()
	if err := m.core.Propose([]byte(value)); err != nil {
		c.t.Fatalf("propose at member %d: %v", m.id, err)
	}
	c.run("agreement on "+value, func() bool { return slices.Contains(m.values, value) })
}

// converge waits until all members that are up have applied the same.
func (c *cluster) converge() {
	c.t.Helper()
	c.run("all members at the same index", func() bool {
		if l := c.leader(); l == nil || !l.core.committedInTerm() {
			return false
		}
		for _, m := range c.members {
			if m.core != nil && m.index != c.newest {
				return false
			}
		}
		return true
	})
}

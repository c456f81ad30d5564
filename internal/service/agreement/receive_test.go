package agreement

import (
	"errors"
	"strings"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

func entry(index, term uint64) *raftpb.Entry {
	return &raftpb.Entry{Index: new(index), Term: new(term), Data: []byte("x")}
}

func TestReceiveRefuses(t *testing.T) {
	good := func() *raftpb.Message {
		return &raftpb.Message{Type: raftpb.MsgApp.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(9)), Index: new(uint64(1)), LogTerm: new(uint64(1))}
	}
	cases := map[string]func(m *raftpb.Message){
		"addressed to member 3":     func(m *raftpb.Message) { m.To = new(uint64(3)) },
		"cannot have this id":       func(m *raftpb.Message) { m.From = new(uint64(1)) },
		"do not send this type":     func(m *raftpb.Message) { m.Type = raftpb.MsgProp.Enum() },
		"has no term":               func(m *raftpb.Message) { m.Term = nil },
		"the sender's own disk":     func(m *raftpb.Message) { m.Responses = []*raftpb.Message{good()} },
		"entry 3 follows entry 1":   func(m *raftpb.Message) { m.Entries = []*raftpb.Entry{entry(3, 2)} },
		"term 10, outside 1 to 9":   func(m *raftpb.Message) { m.Entries = []*raftpb.Entry{entry(2, 10)} },
		"term 2, outside 3 to 9":    func(m *raftpb.Message) { m.Entries = []*raftpb.Entry{entry(2, 3), entry(3, 2)} },
		"it carries no snapshot":    func(m *raftpb.Message) { m.Type = raftpb.MsgSnap.Enum() },
		"the snapshot has term 10":  func(m *raftpb.Message) { snapMessage(m, 5, 10, 1) },
		"the snapshot names no vot": func(m *raftpb.Message) { snapMessage(m, 5, 5) },
	}
	for want, spoil := range cases {
		core, err := New(Config{ID: 1, HeartbeatTicks: 1, ElectionTicks: 10}, Disk{Snapshot: Bootstrap([]uint64{1, 2, 3}, nil)})
		if err != nil {
			t.Fatal(err)
		}
		m := good()
		spoil(m)
		before := core.Status()
		var refused *MessageError
		if err := core.Receive(m); !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a refusal that says %q", err, want)
		}
		if after := core.Status(); after.Term != before.Term || core.HasReady() {
			t.Errorf("%s: the refused message had an effect", want)
		}
		if err := core.Receive(good()); err != nil {
			t.Errorf("the message is refused unspoilt: %v", err)
		}
	}
	var none *MessageError
	core, _ := New(Config{ID: 1, HeartbeatTicks: 1, ElectionTicks: 10}, Disk{})
	if err := core.Receive(nil); !errors.As(err, &none) {
		t.Errorf("no message at all: %v", err)
	}
}

func snapMessage(m *raftpb.Message, index, term uint64, voters ...uint64) {
	m.Type = raftpb.MsgSnap.Enum()
	m.Snapshot = &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: new(index), Term: new(term), ConfState: &raftpb.ConfState{Voters: voters}}}
}

func TestLostLog(t *testing.T) {
	core, err := New(Config{ID: 1, HeartbeatTicks: 1, ElectionTicks: 10}, Disk{Snapshot: Bootstrap([]uint64{1, 2, 3}, nil)})
	if err != nil {
		t.Fatal(err)
	}
	m := &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(9)), Commit: new(uint64(50))}
	var lost *LostLogError
	if err := core.Receive(m); !errors.As(err, &lost) || lost.Commit != 50 || lost.Last != 1 {
		t.Errorf("got %v, want a LostLogError from 1 to 50", err)
	}
}

// TestStaleAnswer: the answer of a member that was removed meanwhile is not an error.
// TestAnswerFromAhead: a member that has entries that the leader did not send shows that
// its log differs from the leader's. Entries that the leader has sent, but not saved
// itself, are not such entries.
func TestAnswerFromAhead(t *testing.T) {
	_, leader := threeMembers(t)
	if err := leader.core.Propose([]byte("a")); err != nil {
		t.Fatal(err)
	}
	rd := leader.core.Ready() // its save stays under way
	sent := rd.Save.Entries[len(rd.Save.Entries)-1].GetIndex()
	answer := func(index uint64, reject bool) error {
		return leader.core.Receive(&raftpb.Message{Type: raftpb.MsgAppResp.Enum(), From: new(leader.id%3 + 1), To: new(leader.id),
			Term: new(leader.core.Status().Term), Index: new(index), Reject: new(reject)})
	}
	if err := errors.Join(answer(sent, false), answer(sent+1, true)); err != nil {
		t.Errorf("answers of a correct member: %v", err)
	}
	var lost *LostLogError
	if err := answer(sent+1, false); !errors.As(err, &lost) || lost.Last != sent || lost.Commit != sent+1 || lost.Peer == 0 {
		t.Errorf("entry %d is acknowledged, %d was sent: %v", sent+1, sent, err)
	}
}

func TestStaleAnswer(t *testing.T) {
	core, err := New(Config{ID: 1, HeartbeatTicks: 1, ElectionTicks: 10}, Disk{Snapshot: Bootstrap([]uint64{1, 2, 3}, nil)})
	if err != nil {
		t.Fatal(err)
	}
	m := &raftpb.Message{Type: raftpb.MsgAppResp.Enum(), From: new(uint64(7)), To: new(uint64(1)), Term: new(uint64(1)), Index: new(uint64(1))}
	if err := core.Receive(m); err != nil {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	boot := Bootstrap([]uint64{1, 2, 3}, nil)
	commit := func(n uint64) *raftpb.HardState { return &raftpb.HardState{Term: new(uint64(2)), Commit: new(n)} }
	cases := map[string]struct {
		cfg  Config
		disk Disk
	}{
		"member id 0":                   {Config{HeartbeatTicks: 1, ElectionTicks: 2}, Disk{}},
		"HeartbeatTicks is 0":           {Config{ID: 1, ElectionTicks: 2}, Disk{}},
		"ElectionTicks is 1":            {Config{ID: 1, HeartbeatTicks: 1, ElectionTicks: 1}, Disk{}},
		"MaxInflightMessages is -1":     {Config{ID: 1, HeartbeatTicks: 1, ElectionTicks: 2, MaxInflightMessages: -1}, Disk{}},
		"MaxInflightBytes is 5":         {Config{ID: 1, HeartbeatTicks: 1, ElectionTicks: 2, MaxInflightBytes: 5}, Disk{}},
		"MaxReads is -1":                {Config{ID: 1, HeartbeatTicks: 1, ElectionTicks: 2, MaxReads: -1}, Disk{}},
		"entries but no snapshot":       {testMember(), Disk{Entries: []*raftpb.Entry{entry(1, 1)}}},
		"entry 3 follows entry 1":       {testMember(), Disk{Snapshot: boot, Entries: []*raftpb.Entry{entry(3, 1)}}},
		"entry 3 has term 4":            {testMember(), Disk{Snapshot: boot, Entries: []*raftpb.Entry{entry(2, 5), entry(3, 4)}}},
		"index 9 is committed":          {testMember(), Disk{Snapshot: boot, HardState: commit(9)}},
		"index 2 is applied, but only ": {testMember(), Disk{Snapshot: boot, HardState: commit(1), Applied: 2}},
	}
	for want, c := range cases {
		if _, err := New(c.cfg, c.disk); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that says %q", err, want)
		}
	}
}

func testMember() Config { return Config{ID: 1, HeartbeatTicks: 1, ElectionTicks: 10} }

// TestAppliedOnRestart: entries that the state machine already contains are
// not handed out again.
func TestAppliedOnRestart(t *testing.T) {
	disk := Disk{
		Snapshot:  Bootstrap([]uint64{1}, nil),
		HardState: &raftpb.HardState{Term: new(uint64(2)), Commit: new(uint64(4))},
		Entries:   []*raftpb.Entry{entry(2, 2), entry(3, 2), entry(4, 2)},
		Applied:   3,
	}
	core, err := New(testMember(), disk)
	if err != nil {
		t.Fatal(err)
	}
	rd := core.Ready()
	if len(rd.Committed) != 1 || rd.Committed[0].GetIndex() != 4 {
		t.Errorf("handed out %v, want entry 4 alone", rd.Committed)
	}
	if s := core.Status(); s.Applied != 3 || s.Commit != 4 || s.Last != 4 {
		t.Errorf("status %+v", s)
	}
}

// TestSnapshotBounds: a snapshot states what is applied, and compaction stops
// at the snapshot.
func TestSnapshotBounds(t *testing.T) {
	c, leader := threeMembers(t)
	c.propose(leader, "a")
	if _, err := leader.core.CreateSnapshot(leader.index+1, nil); err == nil || !strings.Contains(err.Error(), "applied") {
		t.Errorf("snapshot of the future: %v", err)
	}
	if err := leader.core.Compact(leader.index); err == nil || !strings.Contains(err.Error(), "newest snapshot is at 1") {
		t.Errorf("compaction beyond the snapshot: %v", err)
	}
	if s, err := leader.core.CreateSnapshot(leader.index, []byte("state")); err != nil || string(s.GetData()) != "state" || len(s.GetMetadata().GetConfState().GetVoters()) != 3 {
		t.Errorf("snapshot %v, %v", s, err)
	}
	if _, err := leader.core.CreateSnapshot(leader.index, nil); err == nil || !strings.Contains(err.Error(), "there is one at") {
		t.Errorf("the same snapshot again: %v", err)
	}
}

// TestSnapshotAskedForMeanwhile: a snapshot that raft asks for while it is being made is
// not requested again. There cannot be two at the same index.
func TestSnapshotAskedForMeanwhile(t *testing.T) {
	c, leader := threeMembers(t)
	c.propose(leader, "a")
	leader.core.log.fresh = func(index uint64) bool { return index == leader.index }
	if _, err := leader.core.log.Snapshot(); !errors.Is(err, raft.ErrSnapshotTemporarilyUnavailable) {
		t.Fatalf("a snapshot that is not fresh: %v", err)
	}
	if _, err := leader.core.CreateSnapshot(leader.index, []byte("state")); err != nil {
		t.Fatal(err)
	}
	if leader.core.HasReady() && leader.core.Ready().WantSnapshot {
		t.Error("it is asked for again")
	}
}

// TestSnapshotWhileInstalling: the state machine may already hold the
// leader's snapshot, so its state is not that of the applied index.
func TestSnapshotWhileInstalling(t *testing.T) {
	c, leader := threeMembers(t)
	behind := c.other(leader)
	c.crash(behind.id)
	c.propose(leader, "a")
	c.snapshot(leader)
	c.start(behind.id)
	for behind.core.Status().Commit < leader.index {
		c.ticks1(behind)
	}
	if _, err := behind.core.CreateSnapshot(behind.index, nil); !errors.Is(err, ErrSnapshotPending) {
		t.Errorf("snapshot while another is installed: %v, want ErrSnapshotPending", err)
	}
	if err := behind.core.Compact(1); !errors.Is(err, ErrSnapshotPending) {
		t.Errorf("compaction while a snapshot is installed: %v, want ErrSnapshotPending", err)
	}
	c.converge()
}

// ticks1 passes one tick and settles everything but the disk of one member
// once a snapshot has reached it.
func (c *cluster) ticks1(slow *member) {
	c.leader().core.Tick()
	for _, id := range c.ids() {
		m := c.members[id]
		c.drain(m)
		for len(m.saves) > 0 && (m != slow || m.saves[0].Snapshot == nil) {
			c.persist(m)
			c.drain(m)
		}
	}
	for len(c.network) > 0 {
		c.deliver(0)
	}
}

func TestLogger(t *testing.T) {
	var lines []string
	l := &logger{sink: func(level Level, text string) { lines = append(lines, text) }}
	l.Debugf("%d", 1)
	l.Infof("%d", 2)
	l.Warning("3")
	l.verbose = true
	l.Debug("4")
	l.muted = true
	l.Error("5")
	if got := strings.Join(lines, " "); got != "2 3 4" {
		t.Errorf("logged %q, want \"2 3 4\"", got)
	}
	defer func() {
		if r := recover(); r != "raft: broken 6" {
			t.Errorf("panicked with %v", r)
		}
	}()
	l.Panicf("broken %d", 6)
}

// TestMessagesSurviveTheWire: what a Core sends is whole when it is encoded.
func TestMessagesSurviveTheWire(t *testing.T) {
	_, leader := threeMembers(t)
	if err := leader.core.Propose([]byte("a")); err != nil {
		t.Fatal(err)
	}
	rd := leader.core.Ready()
	if len(rd.Send) != 2 {
		t.Fatalf("%d messages, want one to each peer", len(rd.Send))
	}
	for _, m := range rd.Send {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		back := new(raftpb.Message)
		if err := proto.Unmarshal(b, back); err != nil || raft.DescribeMessage(back, nil) != raft.DescribeMessage(m, nil) {
			t.Errorf("%v came back as %v, %v", m, back, err)
		}
	}
}

// TestSnapshotOvertakesApplying: entries that were handed out and are part of
// a snapshot installed meanwhile no longer count against the bound.
func TestSnapshotOvertakesApplying(t *testing.T) {
	cfg := testMember()
	cfg.MaxApplyingBytes = 1
	core, err := New(cfg, Disk{Snapshot: Bootstrap([]uint64{1, 2, 3}, nil)})
	if err != nil {
		t.Fatal(err)
	}
	step := func(m *raftpb.Message) Ready {
		m.From, m.To, m.Term = new(uint64(2)), new(uint64(1)), new(uint64(2))
		if err := core.Receive(m); err != nil {
			t.Fatal(err)
		}
		core.Saved(core.Ready().Save)
		return core.Ready()
	}
	first := step(&raftpb.Message{Type: raftpb.MsgApp.Enum(), Index: new(uint64(1)), LogTerm: new(uint64(1)),
		Entries: []*raftpb.Entry{entry(2, 2), entry(3, 2)}, Commit: new(uint64(3))})
	if len(first.Committed) != 1 {
		t.Fatalf("%d entries handed out, want one at a time", len(first.Committed))
	}
	install := &raftpb.Message{}
	snapMessage(install, 10, 2, 1, 2, 3)
	step(install)
	core.Applied(first.Committed)
	next := step(&raftpb.Message{Type: raftpb.MsgApp.Enum(), Index: new(uint64(10)), LogTerm: new(uint64(2)),
		Entries: []*raftpb.Entry{entry(11, 2)}, Commit: new(uint64(11))})
	if len(next.Committed) != 1 || next.Committed[0].GetIndex() != 11 {
		t.Errorf("handed out %v after the snapshot, want entry 11", next.Committed)
	}
}

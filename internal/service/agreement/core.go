package agreement

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/confchange"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// Core is the agreement state machine of one member.
type Core struct {
	cfg  Config
	node *raft.RawNode
	log  *memoryLog
	out  *logger

	// blank holds until the first snapshot: see the package comment.
	blank bool

	// saving holds the saves handed out and not yet durable, oldest first.
	saving []*Save
	// applying holds the entries handed out and not yet applied, in order.
	applying []*raftpb.Entry
	// applied is the last index acknowledged by Applied or by a snapshot.
	applied uint64

	// conf is the configuration as of changed, the last index at which an
	// applied entry or a snapshot set it.
	conf    *raftpb.ConfState
	changed uint64

	// The role and term as last observed. electedAt is the commit index at the
	// time this member became leader of the term: a leader commits only
	// entries of its own term, so a higher commit index proves that one is
	// committed.
	role      Role
	term      uint64
	electedAt uint64

	reads reads

	// commits has, for each peer at most one, the messages that only tell the commit index and
	// were not sent yet. tell is set when they must be sent.
	commits []*raftpb.Message
	tell    bool

	settlement settlement
}

// New returns the Core of a member that finds disk on its disk.
func New(cfg Config, disk Disk) (*Core, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	disk, err := disk.normal()
	if err != nil {
		return nil, err
	}
	c := &Core{
		cfg:     cfg,
		out:     &logger{sink: cfg.Log, verbose: cfg.Verbose},
		log:     newMemoryLog(disk),
		blank:   disk.Snapshot == nil,
		applied: disk.Applied,
		conf:    disk.Snapshot.GetMetadata().GetConfState(),
		changed: disk.Snapshot.GetMetadata().GetIndex(),
	}
	c.log.fresh = func(index uint64) bool { return index >= c.changed }
	if c.node, err = raft.NewRawNode(c.raftConfig(disk.Applied)); err != nil {
		return nil, fmt.Errorf("agreement: %w", err)
	}
	c.observe()
	return c, nil
}

// raftConfig sets the options that must not be configurable. Forwarding is off because what
// is proposed depends on being the leader. Reads go through a majority because a lease
// would rely on clocks.
func (c *Core) raftConfig(applied uint64) *raft.Config {
	return &raft.Config{
		ID:                        c.cfg.ID,
		ElectionTick:              c.cfg.ElectionTicks,
		HeartbeatTick:             c.cfg.HeartbeatTicks,
		Storage:                   c.log,
		Applied:                   applied,
		AsyncStorageWrites:        true,
		MaxSizePerMsg:             c.cfg.MaxMessageBytes,
		MaxCommittedSizePerReady:  c.cfg.MaxApplyingBytes,
		MaxUncommittedEntriesSize: c.cfg.MaxUncommittedBytes,
		MaxInflightMsgs:           c.cfg.MaxInflightMessages,
		MaxInflightBytes:          c.cfg.MaxInflightBytes,
		CheckQuorum:               true,
		PreVote:                   true,
		ReadOnlyOption:            raft.ReadOnlySafe,
		Logger:                    c.out,
		DisableProposalForwarding: true,
		StepDownOnRemoval:         true,
	}
}

// Tick advances the logical clock by one tick.
func (c *Core) Tick() {
	c.node.Tick()
	c.tell = len(c.commits) > 0
	c.observe()
	c.appendOwed()
}

// Receive takes a message from a peer, which the transport has authenticated.
// It returns a *MessageError for what no correct peer sends and a
// *LostLogError when this member turns out to have lost its log; messages that
// are merely late are dropped without an error.
func (c *Core) Receive(m *raftpb.Message) error {
	if err := c.check(m); err != nil {
		return err
	}
	if c.blank && !c.takenWhenBlank(m) {
		return nil
	}
	err := c.node.Step(m)
	c.observe()
	if errors.Is(err, raft.ErrStepPeerNotFound) {
		return nil // a late answer of a member removed meanwhile
	}
	return err
}

// Propose asks to append data as an entry. Nil means only that it was appended
// here. It is agreed on when it appears in Ready.Committed, and may be lost
// if this member stops leading.
func (c *Core) Propose(data []byte) error {
	if len(data) == 0 {
		return ErrEmpty
	}
	return c.propose(&raftpb.Entry{Data: data})
}

func (c *Core) propose(e *raftpb.Entry) error {
	if c.role != Leader {
		return ErrNotLeader
	}
	m := &raftpb.Message{Type: raftpb.MsgProp.Enum(), From: new(c.cfg.ID), Entries: []*raftpb.Entry{e}}
	c.out.muted = true
	err := c.node.Step(m)
	c.out.muted = false
	switch {
	case errors.Is(err, raft.ErrProposalDropped):
		return c.whyDropped()
	case err != nil:
		return fmt.Errorf("agreement: %w", err)
	case m.GetEntries()[0].GetType() != e.GetType():
		// Raft appends an empty entry in place of a change it refuses.
		return ErrChangePending
	}
	return nil
}

func (c *Core) whyDropped() error {
	switch status := c.node.Status(); {
	case status.LeadTransferee != raft.None:
		return ErrTransferring
	case status.Progress[c.cfg.ID].Next == 0: // removed, and about to step down
		return ErrNotLeader
	}
	return ErrBusy
}

// ProposeChange asks for the configuration to change. Several changes are made
// as one, through a joint configuration that raft leaves by itself. The
// context comes back with the entry (see DecodeChange). A change that cannot
// be applied, such as one that leaves no voter, is refused here.
func (c *Core) ProposeChange(context []byte, changes ...*raftpb.ConfChangeSingle) error {
	if c.role != Leader {
		return ErrNotLeader
	}
	if len(changes) == 0 {
		return errors.New("agreement: a configuration change must change something")
	}
	change := &raftpb.ConfChangeV2{Changes: changes, Context: context}
	if err := c.tryChange(change); err != nil {
		return fmt.Errorf("agreement: configuration change %s refused: %w", raftpb.ConfChangesToString(changes), err)
	}
	kind, data, err := raftpb.MarshalConfChange(change)
	if err != nil {
		return fmt.Errorf("agreement: %w", err)
	}
	return c.propose(&raftpb.Entry{Type: kind.Enum(), Data: data})
}

// tryChange applies the change to a copy of the configuration, with the same code
// that will apply it later. Only one change can be under way, so a change that
// succeeds here cannot fail there.
func (c *Core) tryChange(change *raftpb.ConfChangeV2) error {
	for _, single := range change.GetChanges() {
		if single.GetNodeId() == 0 || raft.IsLocalMsgTarget(single.GetNodeId()) {
			return fmt.Errorf("member id %d is reserved; use a number from 1 up", single.GetNodeId())
		}
	}
	status := c.node.Status()
	if len(status.Config.Voters[1]) > 0 {
		return ErrChangePending
	}
	t := tracker.MakeProgressTracker(1, 1)
	t.Config = status.Config
	for id, progress := range status.Progress {
		t.Progress[id] = &progress
	}
	changer := confchange.Changer{Tracker: t, LastIndex: c.log.last()}
	var err error
	if _, joint := change.EnterJoint(); joint {
		_, _, err = changer.EnterJoint(true, change.GetChanges()...)
	} else {
		_, _, err = changer.Simple(change.GetChanges()...)
	}
	return err
}

// Campaign starts an election now, if this member may stand in one.
func (c *Core) Campaign() {
	if err := c.node.Campaign(); err != nil {
		c.out.Warningf("campaign: %v", err)
	}
	c.observe()
}

// TransferLeader hands the leadership to a voter. It is under way until
// Ready.Role changes, or for one election timeout.
func (c *Core) TransferLeader(to uint64) error {
	if c.role != Leader {
		return ErrNotLeader
	}
	if !slices.Contains(c.conf.GetVoters(), to) {
		return fmt.Errorf("agreement: member %d is not a voter; transfer to one of %v", to, c.conf.GetVoters())
	}
	c.node.TransferLeader(to)
	return nil
}

// StepDown makes a leader a follower at once, and its voters elect another
// leader after an election timeout. A leader that is the only voter stays.
//
// Raft has no call for this. A leader does it by itself when its check for an
// active quorum fails. The first check here counts all members as inactive. The
// second finds no quorum, because no message can arrive between the two. So the
// step is one that raft takes anyway: no message of a peer is made up, no term
// is raised, and nothing waits for the disk.
func (c *Core) StepDown() {
	for range 2 {
		must(c.node.Step(&raftpb.Message{Type: raftpb.MsgCheckQuorum.Enum(), From: new(raft.LocalApplyThread)}))
	}
	c.observe()
}

// ReportUnreachable says that messages to a peer are being lost, so that the
// leader stops sending it entries in advance.
func (c *Core) ReportUnreachable(id uint64) { c.node.ReportUnreachable(id) }

// ReportSnapshot says whether a snapshot sent to a peer has arrived. It is
// owed for every MsgSnap sent: until then the leader sends the peer no entry.
func (c *Core) ReportSnapshot(id uint64, ok bool) {
	status := raft.SnapshotFinish
	if !ok {
		status = raft.SnapshotFailure
	}
	c.node.ReportSnapshot(id, status)
}

// observe notices a change of role or term after a step.
func (c *Core) observe() {
	status := c.node.BasicStatus()
	role, term := roleOf(status.RaftState), status.GetTerm()
	if role == c.role && term == c.term {
		return
	}
	c.role, c.term = role, term
	c.electedAt = status.GetCommit()
	c.reads.forget()
	c.commits, c.tell = nil, false
	c.settlement = settlement{after: c.electedAt}
}

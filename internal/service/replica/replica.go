package replica

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/lease"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/version"
)

// Config sets up a replica. Zero values get the defaults in brackets.
type Config struct {
	// ID is the id of this server, from 1 up. UID was drawn when its data directory was
	// created.
	ID, UID uint64
	// PeerAddress and ClientAddress are this server's addresses for servers and for clients,
	// for the record.
	PeerAddress, ClientAddress string
	// Founders are the founders in the founding record, if it is known.
	Founders []registry.Member
	// Tick is the time between two calls of Tick in ns [10 ms].
	Tick int64
	// HeartbeatTicks is the time between two heartbeats of the leader [50 ms].
	HeartbeatTicks int
	// ElectionTicks is the election timeout: how long a follower waits without a heartbeat
	// before it stands for election, between this value and twice this value [200 ms].
	ElectionTicks int

	// MaxPending bounds the requests that wait to get into the log, and the reads
	// that wait for a quorum round to begin [65,536].
	MaxPending int
	// MaxPendingBytes also bounds the requests that wait to get into the log
	// [64 MiB].
	MaxPendingBytes int
	// MaxBatchBytes bounds a log entry [512 KiB]: with MaxInflight it bounds what a request waits
	// for that gets into the next one.
	MaxBatchBytes int
	// MaxInflight bounds the entries of this leader that are not applied yet [4]. Requests
	// that arrive meanwhile share the next entry: under load this makes entries large and
	// fsyncs few.
	MaxInflight int
	// SnapshotBytes is the size of the log after which a snapshot is made [16 MiB].
	SnapshotBytes int
	// Stagger makes servers that start together make their snapshots one after another,
	// and not all at the same entry.
	Stagger bool
	// TailEntries is the number of entries before a snapshot that are kept in memory for
	// members that lag a little [5,000, but at most 16 MiB].
	TailEntries int
	// StateLimit is the largest size of the state, in bytes, about as encoded. As the leader
	// this server refuses requests that would make it larger [512 MiB].
	StateLimit int

	// Levels are the levels that this server reads [those of the release].
	Levels Levels
	// DigestEvery is the number of log entries after which servers compare their states
	// [4,096].
	DigestEvery uint64
	// LevelSoak is how long all members must have been able to read a level before the
	// cluster changes to it by itself, in ns [1 h]. In the first 1/1,800 of that time after the
	// founding the cluster does not wait.
	LevelSoak int64

	// Audits, if not nil, reports whether the grants and ends of holds of a name go into Output.
	Audits func(name string) bool

	// Log receives what raft reports, one line each.
	Log func(level agreement.Level, text string)
}

// WithDefaults fills in the zero values.
func (c Config) WithDefaults() Config {
	set(&c.Tick, 10e6)
	set(&c.HeartbeatTicks, int(max(50e6/c.Tick, 1)))
	set(&c.ElectionTicks, 4*c.HeartbeatTicks)
	set(&c.MaxPending, 1<<16)
	set(&c.MaxPendingBytes, 64<<20)
	set(&c.MaxBatchBytes, 1<<19)
	set(&c.MaxInflight, 4)
	set(&c.SnapshotBytes, 16<<20)
	set(&c.TailEntries, 5000)
	set(&c.Levels.Min, version.Min)
	set(&c.Levels.Max, version.Max)
	set(&c.LevelSoak, 3600e9)
	set(&c.DigestEvery, 4096)
	set(&c.StateLimit, 512<<20)
	return c
}

func set[T int | int64 | uint32 | uint64](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Reply is the answer to a request of the client that the host knows as Conn. A request to
// acquire that waits gets two answers.
type Reply struct {
	Conn uint64
	registry.Outcome
}

// Read reports that the host may now read from the registry for the read with its number ID
// or, if OK is false, that this server cannot confirm that it leads.
type Read struct {
	ID uint64
	OK bool
}

// WatchLocks sets whether Output lists the names of locks that change.
func (r *Replica) WatchLocks(wanted bool) { r.fx.WatchLocks = wanted }

// Encode asks for a snapshot of a version; Index is the index of its newest log entry.
type Encode struct {
	Index   uint64
	Version *registry.Version
}

// Output is what the host must carry out. It is valid until the next call.
type Output struct {
	Send    []*raftpb.Message
	Saves   []*agreement.Save
	Replies []Reply
	Reads   []Read
	// Encode, if its Version is not nil, must be encoded for a snapshot. That may take
	// long, and any goroutine may do it. Then call Encoded.
	Encode Encode
	// Snapshot, if not nil, is to be stored; then call SnapshotStored.
	Snapshot *raftpb.Snapshot
	// Digests must be sent to all other servers, whose hosts pass them to Compare. Losing
	// one does no harm.
	Digests []Digest
	// Deposed means that this server ceased to lead: requests of its clients that have no
	// answer may or may not have been carried out.
	Deposed bool
	// Elections are the names of elections whose leader changed. Locks are the names of
	// locks whose holders or queue changed, if they are watched.
	Elections []string
	Locks     []string
	// Held are the grants and ends of holds that Config.Audits asks for, by log entry.
	Held []registry.Holdings
	// Seats answers commands that servers, including this one, sent for their seats.
	Seats []SeatReply
	// View means that seats, guards or the epoch have changed.
	View bool
	// Restored means that the registry was replaced by a snapshot.
	Restored bool
	// Members means that the results of Members and Gone may have changed.
	Members bool
	// Err is why this server must stop.
	Err error
}

func (o *Output) reset() {
	clear(o.Replies)
	clear(o.Seats)
	*o = Output{
		Send: o.Send[:0], Saves: o.Saves[:0], Replies: o.Replies[:0],
		Digests: o.Digests[:0], Reads: o.Reads[:0], Elections: o.Elections[:0], Locks: o.Locks[:0], Seats: o.Seats[:0], Err: o.Err,
	}
}

// Replica is the I/O-free core of a server. It is not safe for concurrent use.
type Replica struct {
	*self
	members
	seats   seats   // of guarded names; some of it of every server
	clients clients // while this server leads
	snapshots
	saving
	digests

	fx    registry.Effects
	batch registry.Batch // the content of the entry that was applied last

	ticked int64 // the reading of the host's clock at the last tick
	deeds  Deeds

	leader  uint64
	elected uint64 // who was seen to lead in this term, or 0

	// The following fields are used while this server leads, and are empty otherwise.

	// restricted is why requests are refused that Restrict rules out, or empty.
	restricted string
	pending    *scheduler
	entry      []registry.Command // the next, if it was drawn and could not be proposed
	inflight   int
	sent       []int64 // when the entries in flight were proposed
	proposed   int     // bytes of the entries in flight
	written    int64   // the replicated time of the newest entry that this leader proposed
	leases     *lease.Table
	ousted     *lease.Revocations
	looked     int // ticks since elections were last looked at
	rounds     rounds
}

// self is what the parts of a replica share: the state that they read, the commands that they
// decide on, and the output.
type self struct {
	cfg  Config
	core *agreement.Core
	reg  *registry.Registry
	now  int64 // the newest reading of the host's clock, ns
	gaps int64 // the time that this server stood still, in all
	// base is the replicated time when this server's clock showed origin, while it leads. It showed
	// dated when the newest entry was applied or, before that, at the first tick.
	base, origin, dated int64

	applied uint64 // index of the newest entry applied
	role    agreement.Role
	term    uint64
	// ready means that this server leads and has applied an entry of its own term.
	ready bool
	// verdicts are commands of this leader for the next entry.
	verdicts []registry.Command

	out Output
}

// New returns a replica that continues from what the disk holds. A member that takes part
// from the start begins with the snapshot from Bootstrap.
func New(cfg Config, disk agreement.Disk) (*Replica, error) {
	cfg = cfg.WithDefaults()
	own := &self{cfg: cfg, reg: registry.New()}
	r := &Replica{
		self: own, members: newMembers(own), seats: newSeats(own), clients: newClients(own),
		snapshots: newSnapshots(own), saving: saving{self: own}, digests: newDigests(own),
		pending: newScheduler(), rounds: newRounds(),
		leases: lease.NewTable(), ousted: lease.NewRevocations(),
	}
	if meta := disk.Snapshot.GetMetadata(); meta.GetIndex() > 0 {
		restored, err := registry.Decode(disk.Snapshot.GetData())
		if err != nil {
			return nil, fmt.Errorf("snapshot at index %d: %w", meta.GetIndex(), err)
		}
		r.reg, r.applied = restored, meta.GetIndex()
	}
	core, err := agreement.New(agreement.Config{
		ID: cfg.ID, ElectionTicks: cfg.ElectionTicks, HeartbeatTicks: cfg.HeartbeatTicks,
		KeepEntries: cfg.TailEntries, Log: cfg.Log,
	}, disk)
	if err != nil {
		return nil, err
	}
	r.core = core
	if core.Blank() {
		return r, r.checkGone() // without state there is no level to check
	}
	return r, errors.Join(r.checkLevel(), r.checkGone())
}

// Bootstrap returns the snapshot from which every founding member starts.
func Bootstrap(voters []uint64) *raftpb.Snapshot {
	return agreement.Bootstrap(voters, registry.New().Freeze().Encode())
}

// Registry returns the applied state. The caller must not change it, and may use it only
// until the next call.
func (r *Replica) Registry() *registry.Registry { return r.reg }

// Leading reports whether this server leads and accepts requests.
func (r *self) Leading() bool { return r.role == agreement.Leader }

// Leader returns the id of the leader, or 0 if none is known.
func (r *Replica) Leader() uint64 { return r.leader }

// Term returns the current term of this server.
func (r *Replica) Term() uint64 { return r.term }

// Applied returns the index of the newest entry applied.
func (r *Replica) Applied() uint64 { return r.applied }

// Blank reports whether this server has no state yet.
func (r *Replica) Blank() bool { return r.core.Blank() }

// Status describes the agreement.
func (r *Replica) Status() agreement.Status { return r.core.Status() }

// Remaining returns the remaining time of a session in ns, as far as the leader knows; 0 on
// other servers.
func (r *Replica) Remaining(id registry.SessionID) int64 {
	return r.leases.Remaining(id, r.leaseClock())
}

// leaseClock returns the reading of a clock that stands still while this server is suspended.
func (r *self) leaseClock() int64 { return r.now - r.gaps }

// Tick advances the replica by one tick.
func (r *Replica) Tick(now int64) {
	if r.ticked == 0 {
		r.dated = now
	}
	if gap := now - r.ticked; r.ticked != 0 && gap > r.electionTimeout() {
		r.gaps += gap
		if r.Leading() {
			r.deeds.Forgiven += gap
		}
	}
	r.now, r.ticked = now, now
	r.tickCore()
	if !r.ready {
		return
	}
	expired, silent := r.leases.Due(r.leaseClock())
	r.judge(registry.OpExpire, expired)
	r.judge(registry.OpSilence, silent)
	r.oust()
	r.seats.tend()
	r.looked++
	r.admit()
}

func (r *self) electionTimeout() int64 { return int64(r.cfg.ElectionTicks) * r.cfg.Tick }

// Receive takes a message from a peer.
func (r *Replica) Receive(now int64, m *raftpb.Message) {
	r.now = now
	r.heard[m.GetFrom()] = now
	if m.GetType() == raftpb.MsgTimeoutNow && r.stalled() {
		return // it would lead a cluster that it can only hold up
	}
	var lost *agreement.LostLogError
	if err := r.core.Receive(m); errors.As(err, &lost) && !r.core.Blank() {
		r.out.Err = lost
	}
	// Any other error is about a message that no correct server sends; it was
	// dropped.
}

// Read asks to read state from the registry that was current at some time after this
// call. A Read in a later Output answers.
func (r *Replica) Read(id uint64) {
	if !r.Leading() || r.rounds.reads >= r.cfg.MaxPending {
		r.out.Reads = append(r.out.Reads, Read{ID: id})
		return
	}
	r.rounds.ask(asked{read: id})
}

// Saved reports that a save, and all before it, is durable.
func (r *Replica) Saved(now int64, save *agreement.Save) {
	r.now = now
	if save.Snapshot != nil {
		r.restore(save.Snapshot)
	}
	r.sends(r.core.Saved(save))
	r.returned()
}

// Unreachable reports that a message to the peer was lost.
func (r *Replica) Unreachable(peer uint64) { r.core.ReportUnreachable(peer) }

// SnapshotSent reports whether a snapshot reached the peer.
func (r *Replica) SnapshotSent(peer uint64, ok bool) { r.core.ReportSnapshot(peer, ok) }

// Resign hands leadership to the peer that is the least behind, if there is one.
func (r *Replica) Resign() {
	status := r.core.Status()
	r.handOver(&status)
}

// Output returns the results of the inputs since the last call. The wall clock, in ns since
// 1970, is written into the log for people to read.
func (r *Replica) Output(wall int64) *Output {
	r.promote()
	r.keepTime()
	for r.out.Err == nil {
		r.openRound()
		r.propose(wall)
		if !r.core.HasReady() {
			break
		}
		r.take(r.core.Ready())
	}
	r.snapshots.start()
	return &r.out
}

// Clear removes the output after the host has carried it out.
func (r *Replica) Clear() { r.out.reset() }

func (r *Replica) take(ready agreement.Ready) {
	r.sends(ready.Send)
	if ready.Save != nil {
		r.out.Saves = append(r.out.Saves, ready.Save)
		r.handedOut()
	}
	r.snapshots.wanted = r.snapshots.wanted || ready.WantSnapshot
	r.follow(ready)
	for _, entry := range ready.Committed {
		if r.out.Err = r.apply(entry); r.out.Err != nil {
			return
		}
	}
	if len(ready.Committed) > 0 {
		r.core.Applied(ready.Committed)
	}
	for _, read := range ready.Reads {
		r.rounds.confirm(read.Ticket, read.Index)
	}
	r.rounds.finish(r.applied, r.confirmed)
}

// follow notes who leads. The leader of a new term starts with empty state, even if it also led
// in an old one.
func (r *Replica) follow(ready agreement.Ready) {
	led, term := r.Leading(), r.term
	r.role, r.term, r.leader = ready.Role, ready.Term, ready.Leader
	r.checkElection(term)
	if led && (!r.Leading() || r.term != term) {
		r.depose()
	}
}

// checkElection stops this server if two servers lead in one term. That happens only if a
// server forgot its vote because its disk was set back to an older state.
func (r *Replica) checkElection(term uint64) {
	if r.term != term {
		r.elected = 0
	}
	switch {
	case r.leader == 0 || r.leader == r.elected:
	case r.elected == 0:
		r.elected = r.leader
	default:
		r.out.Err = fmt.Errorf("servers %d and %d both lead in term %d: the data directory of a server was set back to an older state; stop all servers, and start again from the one with the largest applied index", r.elected, r.leader, r.term)
	}
}

func (r *Replica) depose() {
	r.out.Deposed = true
	r.ready = false
	r.pending, r.entry = newScheduler(), nil
	r.sent = nil
	r.verdicts, r.inflight, r.proposed = nil, 0, 0
	r.leases = lease.NewTable()
	r.rounds.abandon(func(a asked) {
		if a.read != 0 {
			r.out.Reads = append(r.out.Reads, Read{ID: a.read})
		}
	})
	r.clients.depose()
	r.ousted.Clear()
	r.seats.depose()
	r.members.depose()
}

// BootstrapFrom returns the snapshot from which every member starts that founds a cluster with
// an existing state. Its index and term must be above those of Bootstrap.
func BootstrapFrom(voters []uint64, index, term uint64, state []byte) *raftpb.Snapshot {
	snapshot := agreement.Bootstrap(voters, state)
	snapshot.Metadata.Index, snapshot.Metadata.Term = &index, &term
	return snapshot
}

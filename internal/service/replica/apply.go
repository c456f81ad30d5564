package replica

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/registry"
)

// judge writes verdicts on sessions into the log, many in one command.
func (r *self) judge(op registry.Op, sessions []registry.Verdict) {
	const most = 4096 // sessions in one command: an entry of some 100 KiB
	for len(sessions) > 0 {
		n := min(len(sessions), most)
		r.verdicts = append(r.verdicts, registry.Command{Op: op, Term: r.term, Verdicts: sessions[:n:n]})
		sessions = sessions[n:]
	}
}

// propose moves pending requests into the log, as many as fit into an entry at a time. It waits
// for entries that may lower the level, those of earlier leaders and its own: no entry in a
// format of the higher level may follow them.
func (r *Replica) propose(wall int64) {
	for r.ready && !r.lowering && r.inflight < r.cfg.MaxInflight && len(r.entry)+len(r.verdicts)+r.pending.count > 0 {
		if len(r.entry) == 0 {
			r.entry = r.pending.draw(append(r.entry, r.verdicts...), r.cfg.MaxBatchBytes)
			r.verdicts = nil
		}
		level, _ := r.reg.Level()
		if r.express(level); len(r.entry) == 0 {
			continue
		}
		batch := registry.Batch{Time: r.time(), Wall: wall, Commands: r.entry}
		data := batch.Append(nil, level)
		if r.core.Propose(data) != nil {
			// Too much is uncommitted, or leadership is being handed over. The requests stay
			// pending until there is room or another leader.
			return
		}
		r.lowering = slices.ContainsFunc(r.entry, lowers)
		clear(r.entry)
		r.entry = r.entry[:0]
		r.inflight++
		r.sent = append(r.sent, r.now)
		r.written = batch.Time
		r.proposed += len(data)
	}
}

func (r *Replica) openRound() {
	if !r.Leading() || !r.rounds.wanted() {
		return
	}
	ticket, err := r.core.ReadIndex()
	if err != nil {
		return // not possible now: a later round confirms them
	}
	r.rounds.begin(ticket)
}

// confirmed answers a request that a quorum has confirmed.
func (r *Replica) confirmed(a asked) {
	if a.read != 0 {
		r.out.Reads = append(r.out.Reads, Read{ID: a.read, OK: true})
		return
	}
	id := a.renewal.session
	s, alive := r.reg.Session(id)
	if r.seats.shunned[id] {
		for _, sequence := range append(a.older, a.renewal.sequence) {
			delete(r.clients.routes, routeKey{id, sequence})
		}
		return
	}
	vouched, revoked := alive && r.vouched(id), r.reg.Asked(id)
	for _, sequence := range append(a.older, a.renewal.sequence) {
		outcome := registry.Outcome{Session: id, Sequence: sequence}
		switch {
		case vouched:
			outcome.Result = registry.Result{Code: registry.OK, Remaining: s.TTL, Revoked: revoked}
		case alive:
			// Meanwhile its expiry or its silence was written into the log, so the log decides
			// the result.
			r.enqueue(&registry.Command{Op: registry.OpRenew, Session: id, Sequence: sequence})
			continue
		default:
			outcome.Result = registry.NoSession(id)
		}
		r.clients.answer(outcome)
	}
}

// vouched reports whether this leader may extend the lease of a session without a log
// entry.
func (r *Replica) vouched(id registry.SessionID) bool {
	return r.leases.Renew(id, r.leaseClock())
}

func (r *Replica) apply(entry *raftpb.Entry) error {
	r.applied = entry.GetIndex()
	r.snapshots.logged += len(entry.GetData()) + 32
	own := r.Leading() && entry.GetTerm() == r.term
	switch {
	case entry.GetType() != raftpb.EntryNormal:
		r.changing = false
		if _, err := r.core.ApplyChange(entry); err != nil {
			return err
		}
		r.out.Members = true
		if err := r.checkGone(); err != nil {
			return err
		}
	case len(entry.GetData()) == 0:
		// The first entry of a leader, or the one that settles a change of the members.
	default:
		if err := r.applyBatch(entry, own); err != nil {
			return err
		}
	}
	if own && !r.ready {
		r.lead()
	}
	r.publish()
	return r.digest(entry.GetIndex())
}

// applyBatch applies the batch of an entry. With own set, this server wrote it as the leader.
func (r *Replica) applyBatch(entry *raftpb.Entry, own bool) error {
	batch := &r.batch
	if err := batch.Decode(entry.GetData()); err != nil {
		return fmt.Errorf("log index %d: %w", entry.GetIndex(), err)
	}
	before, _ := r.reg.Level()
	if r.fx.Deeds = nil; own {
		r.fx.Deeds = &r.deeds.Deeds
	}
	r.reg.OnHold(r.audits(entry))
	r.reg.Apply(entry.GetTerm(), batch, &r.fx)
	r.dated = r.now
	if err := r.checkLevel(); err != nil {
		return err
	}
	if after, _ := r.reg.Level(); after != before {
		r.snapshots.levelChanged()
	}
	if own {
		r.inflight--
		r.deeds.Commits.Note(r.now - r.sent[0])
		r.sent = r.sent[1:]
		r.proposed -= len(entry.GetData())
		r.recorded(batch)
	}
	return nil
}

// audits returns what to do with the grants and ends of holds in an entry, or nil.
func (r *Replica) audits(entry *raftpb.Entry) func(registry.Holding) {
	if r.cfg.Audits == nil {
		return nil
	}
	return func(h registry.Holding) {
		if !r.cfg.Audits(h.Name) {
			return
		}
		if n := len(r.out.Held); n == 0 || r.out.Held[n-1].Index != entry.GetIndex() {
			r.out.Held = append(r.out.Held, registry.Holdings{Index: entry.GetIndex(), Term: entry.GetTerm()})
		}
		last := &r.out.Held[len(r.out.Held)-1]
		last.List = append(last.List, h)
	}
}

// recorded ends the step of recording a member or a level.
func (r *Replica) recorded(batch *registry.Batch) {
	for i := range batch.Commands {
		switch batch.Commands[i].Op {
		case registry.OpLevel:
			r.changing, r.lowering = false, false
		case registry.OpMember:
			r.changing = false
		}
	}
}

// lead starts the leases, once the registry has everything that earlier leaders
// committed.
func (r *Replica) lead() {
	r.ready = true
	now := r.leaseClock()
	r.base, r.origin = r.reg.Time(), r.now
	r.written = r.base
	r.reg.Each(func(s registry.Session) {
		r.leases.Inherit(s, now)
	})
}

// timeEvery is how much replicated time a change of the leader can lose while places linger, in ns.
const timeEvery = 60e9

// keepTime writes an entry when a place is due to open that lingers. While any place lingers it
// writes one at least every timeEvery, because the time since the newest entry is lost when the
// leader changes.
func (r *Replica) keepTime() {
	at, some := r.reg.Opens()
	if !some || !r.ready || len(r.entry)+len(r.verdicts)+r.pending.count > 0 { // the next entry has the time anyway
		return
	}
	now := r.time()
	if r.written < at && at <= now || now-r.written >= timeEvery {
		r.verdicts = append(r.verdicts, registry.Command{Op: registry.OpTime})
	}
}

// time returns the replicated time: it continues from the newest entry of earlier leaders with
// this server's monotonic clock. It stands still until all their entries are applied, and the
// time between two leaders is lost. The clock runs on while this server is suspended. That does
// no harm: the replicated time decides only how long candidates have waited and names stay closed.
func (r *self) time() int64 {
	if !r.ready {
		return r.reg.Time()
	}
	return r.base + r.now - r.origin
}

// Estimate returns the replicated time as far as this server knows, which may be less than that of the
// leader: the time of the newest entry, and what has passed here since it was applied, or since the
// start of this server.
func (r *self) Estimate() int64 {
	if r.ready {
		return r.time()
	}
	return r.reg.Time() + r.now - r.dated
}

// publish passes on the effects of applying an entry.
func (r *Replica) publish() {
	if r.ready {
		r.adjustLeases()
	}
	for _, outcome := range r.fx.Outcomes {
		r.clients.answer(outcome)
	}
	for _, id := range r.fx.Closed {
		r.clients.farewell(id)
	}
	for _, id := range r.fx.Ended {
		if _, alive := r.reg.Session(id); !alive {
			delete(r.clients.homes, id)
		}
	}
	r.out.Elections = append(r.out.Elections, r.fx.Elections...)
	r.out.Locks = append(r.out.Locks, r.fx.Locks...)
	r.out.Members = r.out.Members || r.fx.Members
	if r.fx.View {
		r.followSeats()
	}
	r.fx.Reset()
}

func (r *Replica) adjustLeases() {
	now := r.leaseClock()
	for _, id := range r.fx.Renewed {
		if s, alive := r.reg.Session(id); alive {
			r.leases.Begin(s, now)
		}
	}
	for _, id := range r.fx.Ended {
		if _, alive := r.reg.Session(id); !alive {
			r.leases.End(id)
		}
	}
}

// restore replaces the registry by a snapshot from the leader.
func (r *Replica) restore(snapshot *raftpb.Snapshot) {
	restored, err := registry.Decode(snapshot.GetData())
	if err != nil {
		r.out.Err = fmt.Errorf("snapshot at index %d from the leader: %w", snapshot.GetMetadata().GetIndex(), err)
		return
	}
	r.reg, r.applied = restored, snapshot.GetMetadata().GetIndex()
	r.dated = r.now
	if err := r.checkLevel(); err != nil {
		r.out.Err = err
		return
	}
	r.snapshots.superseded()
	r.out.Restored, r.out.Members = true, true
	r.followSeats()
}

// oust drops revoked holds whose time is over.
func (r *Replica) oust() {
	claims, ttls := r.reg.Revoked()
	if overdue := r.ousted.Overdue(claims, ttls, r.leaseClock()); len(overdue) > 0 {
		r.verdicts = append(r.verdicts, registry.Command{Op: registry.OpDrop, Term: r.term, Claims: overdue})
	}
}

// promote writes into the log, at most once per heartbeat, that candidates may replace their
// leaders. The replicated time says how long they have waited. Doing it twice has no further
// effect.
func (r *Replica) promote() {
	if !r.ready || r.looked < r.cfg.HeartbeatTicks {
		return
	}
	r.looked = 0
	for _, name := range r.reg.Overtaken(r.time()) {
		r.verdicts = append(r.verdicts, registry.Command{Op: registry.OpOvertake, Class: registry.Election, Name: name})
	}
}

package replica

// saving is the progress of the disk and of the entries that wait for it. Times are readings of
// the lease clock, in ns, so that the time in which this server was suspended does not count.
type saving struct {
	*self
	unsaved int   // saves handed out and not yet durable
	moved   int64 // when the disk last finished a save, or got one while it was idle
	yielded int64 // when this leader began to hand over because of its disk, or 0

	waitsFor uint64 // the entry that was applied last when entries began to wait
	waits    int64  // when they began to, or 0
}

func (r *saving) handedOut() {
	if r.unsaved == 0 {
		r.moved = r.leaseClock()
	}
	r.unsaved++
}

func (r *saving) returned() {
	r.unsaved--
	r.moved = r.leaseClock()
}

// stalled reports whether the disk has work, but has finished nothing for two election
// timeouts. A disk that is merely slow finishes something now and then.
func (r *saving) stalled() bool {
	return r.unsaved > 0 && r.leaseClock()-r.moved > 2*r.electionTimeout()
}

// tickCore ticks the agreement core, and handles a stalled disk.
//
// A follower with a stalled disk does not tick, so that it does not stand for election.
// Raft asks for votes before the candidate has saved its own vote, so the other servers could
// elect it again and again. It still answers heartbeats. Votes and acknowledgements wait for
// its disk as always.
//
// A leader with a stalled disk still replicates. The others commit without it, but it
// applies nothing. It hands over to a voter that has stored what its own disk could
// not. If it still leads one election timeout later, it steps down.
//
// It stays if no other voter has stored more. Then all may share one disk, or there is no other
// voter. Votes wait for the same disks as entries, so nobody could be elected. A leader that
// stays can still renew sessions, because a renewal needs a quorum but no disk, so holders
// keep their locks. For the same reason a leader stays if its own disk works and those of a
// majority are stalled. Waiting reports both cases.
func (r *Replica) tickCore() {
	r.moved = min(r.moved, r.leaseClock()) // it may be a reading from within a gap
	switch {
	case !r.stalled():
		r.yielded = 0
	case !r.Leading():
		r.yielded = 0
		r.noteWaiting(r.inflight)
		return
	case r.yielded == 0:
		r.yield()
	case r.leaseClock()-r.yielded > r.electionTimeout():
		r.core.StepDown()
		r.yielded = 0
	}
	r.core.Tick()
	r.noteWaiting(r.inflight)
}

// yield starts a handover if another voter has more of the log on its disk.
func (r *Replica) yield() {
	status := r.core.Status()
	var own uint64
	for _, p := range status.Peers {
		if p.ID == r.cfg.ID {
			own = p.Match
		}
	}
	if best, match := r.successor(&status); best != 0 && match > own {
		r.yielded = r.leaseClock()
		_ = r.core.TransferLeader(best)
	}
}

// noteWaiting notes since when entries wait to be applied without progress: committed ones, or the
// given number that this leader has in flight.
func (r *saving) noteWaiting(inflight int) {
	waiting := r.core.Commit() > r.applied || r.Leading() && (!r.ready || inflight > 0)
	switch {
	case !waiting:
		r.waits = 0
	case r.waits == 0 || r.waitsFor != r.applied:
		r.waits, r.waitsFor = r.leaseClock(), r.applied
	}
}

// Waiting returns for how long, in ns, entries have waited to be applied without progress:
// committed entries, or those that this leader proposed.
func (r *saving) Waiting() int64 {
	if r.waits == 0 {
		return 0
	}
	return max(0, r.leaseClock()-r.waits)
}

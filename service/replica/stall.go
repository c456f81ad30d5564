package replica

// saving is how the disk gets on with the saves. Readings are those of the lease
// clock: time in which this server stood still is not the disk's.
type saving struct {
	unsaved int   // saves handed out and not yet durable
	moved   int64 // when the disk last finished one, or was given one after none
	yielded int64 // when this leader began to hand over because of its disk, or 0

	waitsFor uint64 // the entry that was applied last when entries began to wait
	waits    int64  // when they began to, or 0
}

func (r *Replica) handedOut() {
	if r.unsaved == 0 {
		r.moved = r.leaseClock()
	}
	r.unsaved++
}

func (r *Replica) returned() {
	r.unsaved--
	r.moved = r.leaseClock()
}

// stalled reports whether the disk has finished nothing for two election timeouts,
// though it has work. A disk that is only slow finishes something now and then.
func (r *Replica) stalled() bool {
	return r.unsaved > 0 && r.leaseClock()-r.moved > 2*r.electionTimeout()
}

// tickCore lets a tick pass for the agreement, unless the disk is stalled.
//
// A follower with a stalled disk lets none pass, so that it stands for no
// election. Raft asks for votes before the candidate has saved its own, so the
// votes of others could make it the leader. What it answers waits for its disk
// either way, but for heartbeats, which promise nothing that a crash could break.
//
// A leader with a stalled disk still replicates, and the others commit without
// it, but it applies nothing. It hands over to a voter that has stored what its
// own disk could not. If it still leads an election timeout later, it steps down.
//
// It stays if no voter has stored more than this server has: the disks of all may
// be one, or there is no other voter. Votes wait for the same disks as entries,
// so nobody could be elected. And a leader that stays can still renew sessions,
// because that takes a quorum and no disk: holders keep their locks meanwhile.
// For the same reason a leader stays whose own disk works while those of the
// others are stalled.
func (r *Replica) tickCore() {
	r.moved = min(r.moved, r.leaseClock()) // a reading from within a gap
	switch {
	case !r.stalled():
		r.yielded = 0
	case !r.Leading():
		r.yielded = 0
		r.noteWaiting()
		return
	case r.yielded == 0:
		r.yield()
	case r.leaseClock()-r.yielded > r.electionTimeout():
		r.core.StepDown()
		r.yielded = 0
	}
	r.core.Tick()
	r.noteWaiting()
}

// yield begins to hand over, if another voter has more on its disk.
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

// noteWaiting notes since when entries wait to be applied and none is.
func (r *Replica) noteWaiting() {
	waiting := r.core.Committed() > r.applied || r.Leading() && (!r.ready || r.inflight > 0)
	switch {
	case !waiting:
		r.waits = 0
	case r.waits == 0 || r.waitsFor != r.applied:
		r.waits, r.waitsFor = r.leaseClock(), r.applied
	}
}

// Waiting returns for how long, in ns, entries have waited to be applied while
// none was: committed ones, or those that this leader proposed.
func (r *Replica) Waiting() int64 {
	if r.waits == 0 {
		return 0
	}
	return max(0, r.leaseClock()-r.waits)
}

package leasemodel

// apply is what a committed entry does: internal/service/registry. It reports whether the entry
// renewed its session, and so showed that the client is alive.
func (r *registry) apply(e *entry, flaw Flaw) (renewed bool) {
	c := int(e.client)
	r.term = int(e.term)
	if e.verdict != e.term && flaw != NoTerm && flaw != KeptWithoutTerm {
		return false // a verdict of another term is void
	}
	switch e.op {
	case opOpen, opRenew:
		return r.renew(c, e.op, flaw)
	case opAcquire:
		if r.status[c] == open && !r.asked[c] {
			r.asked[c] = true
			r.grant(c)
		}
	case opSilence:
		if r.status[c] == open {
			r.remaining[c] = int(e.value)
		}
	case opExpire:
		r.end(c)
	case opRevoke:
		r.revoked = r.revoked || r.holder == c+1
	case opDrop:
		if r.holder == c+1 && r.revoked {
			r.free()
		}
	}
	return false
}

func (r *registry) renew(c int, o op, flaw Flaw) bool {
	if r.status[c] == gone || r.status[c] == unopened && o == opRenew {
		return false
	}
	r.status[c] = open
	if flaw != SilentForGood {
		r.remaining[c] = 0
	}
	return true
}

// grant gives the lock to a client, or a place in the queue.
func (r *registry) grant(c int) {
	if r.holder != 0 {
		r.waiter = c + 1
		return
	}
	r.holder, r.revoked = c+1, false
	r.fence++
}

// free ends the hold, and grants the lock to the one that waits.
func (r *registry) free() {
	next := r.waiter
	r.holder, r.waiter, r.revoked = 0, 0, false
	if next != 0 {
		r.grant(next - 1)
	}
}

// end ends a session with all that it has.
func (r *registry) end(c int) {
	if r.status[c] != open {
		return
	}
	r.status[c], r.remaining[c] = gone, 0
	if r.waiter == c+1 {
		r.waiter = 0
	}
	if r.holder == c+1 {
		r.free()
	}
}

// tells reports whether the holder is asked to leave and is this client.
func (r *registry) tells(c int) bool { return r.revoked && r.holder == c+1 }

// seen packs what answers to renewals depend on.
func (r *registry) seen() (bits int) {
	for c := range maxClients {
		if r.status[c] == open {
			bits |= 1 << c
		}
		if r.tells(c) {
			bits |= 1 << (maxClients + c)
		}
	}
	return bits
}

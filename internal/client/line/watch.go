package line

import "slices"

const (
	// A server that has sent nothing for quiet while a call waits in a queue gets a Ping, and
	// has pingLimit to answer. A queue can be silent for hours, and the leader that would
	// grant may be stopped.
	quiet     = 250 * ms
	pingLimit = 300 * ms
	// forever is when nothing is due.
	forever = int64(1<<63 - 1)
)

// unansweredLimit is how long a request may be unanswered before other servers are tried in
// addition to the one in use: a quarter of the time for which a renewal is valid, at least 100 ms
// and at most 500 ms. A slow disk may take longer; trying others then does no harm.
func (l *Line) unansweredLimit() int64 { return min(max(l.span()/4, 100*ms), 500*ms) }

// tick does what is due: it renews the session, gives up what has taken too long, and
// watches the server in use.
func (l *Line) tick() {
	l.sessions = slices.DeleteFunc(l.sessions, func(s *Session) bool {
		return s.gone && (len(s.pending) == 0 || l.now-s.retired > l.ttl) // closed, or expired by itself
	})
	if l.serves() && l.using != nil && l.now >= l.session.nextRenewal() {
		l.session.renew()
	}
	l.expireStreams()
	l.watch()
	if l.tryAt != 0 && l.now >= l.tryAt {
		l.tryAt, l.hops = 0, 0
		l.attempt()
	}
}

// Next returns the reading at which the next Tick is due.
func (l *Line) Next() int64 {
	next := forever
	if l.tryAt != 0 {
		next = l.tryAt
	}
	for _, st := range l.streams {
		if !st.welcomed {
			next = min(next, st.opened+welcomeLimit)
		}
	}
	if len(l.sessions) == 0 {
		return next
	}
	next = min(next, l.now+l.unansweredLimit()/4)
	if l.using != nil && l.using.pinging {
		next = min(next, l.using.pinged+l.pingLimit())
	}
	if l.serves() {
		next = min(next, l.session.until)
		if l.using != nil {
			next = min(next, l.session.nextRenewal())
		}
	}
	return next
}

func (l *Line) pingLimit() int64 { return min(pingLimit, l.unansweredLimit()) }

// watch suspects the server in use to be stopped or disconnected, or trusts it again.
func (l *Line) watch() {
	st := l.using
	if st == nil {
		return
	}
	l.ping(st)
	switch suspect := st.mute || l.overdue(); {
	case suspect && !l.suspect:
		l.suspect, l.failures = true, 0
		l.unbind()
		l.emit(Output{Action: Suspected, Address: st.address})
		l.attempt()
	case !suspect && l.suspect:
		l.settle()
	}
}

// ping sends a Ping to the server in use if one is due, and notes if the last one is
// overdue.
func (l *Line) ping(st *stream) {
	if st.pinging && l.now-st.pinged >= l.pingLimit() {
		st.pinging, st.mute = false, true
		if l.serves() {
			l.session.renew() // another server can prove with this request that it leads
		}
	}
	if !st.pinging && l.now-st.heard > quiet && l.serves() && l.session.queued > 0 {
		st.pinging, st.pinged = true, l.now
		l.emit(Output{Action: Ping, Stream: st.id, Address: st.address})
	}
}

// overdue reports whether a request has been unanswered for too long, or an Open could not be
// sent for as long: a stopped server reads no more frames, and the stream's window fills up.
func (l *Line) overdue() bool {
	return slices.ContainsFunc(l.sessions, func(s *Session) bool {
		last := s.unanswered()
		if s.opens() && !s.sent {
			last = s.renewed
		}
		elsewhere := s.opens() && s.via != l.using.id
		return last != 0 && !elsewhere && l.now-last > l.unansweredLimit()
	})
}

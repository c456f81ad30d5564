package line

import (
	"maps"
	"slices"
)

const (
	// shortestBackoff and longestBackoff bound the pause between two attempts to reach
	// a server.
	shortestBackoff = 10 * ms
	longestBackoff  = 250 * ms
	// stagger is how long one attempt runs alone before the next server is tried. A stopped
	// server accepts connections and never answers.
	stagger = 150 * ms
	// maxHops bounds how many servers are followed to the leader that they name without a
	// pause: two servers may name each other.
	maxHops = 3
	// seekLeader is how often a client that is relayed tries to reach the leader
	// itself.
	seekLeader = 2000 * ms
)

// search looks for the leader as long as the Line exists. The first server that welcomes the
// client is used at once. If it does not lead, it reports that in the next frame. While the server
// in use is suspected, others are tried in addition, and the first that carries out a request
// replaces it. A server that is only slow stays in use.
//
// If the named leader cannot be reached, the servers that name it are asked to relay the stream.
// A relayed stream costs a hop and the follower's work, so the leader is preferred: it is tried
// again every seekLeader, and used when it answers.
type search struct {
	identity string // of the cluster, once known
	attached bool
	hopeless bool // Hopeless was reported

	streams []*stream // all that have not ended
	dialled uint64    // number of streams so far
	using   *stream   // the one in use, or nil
	suspect bool      // the server in use leaves requests unanswered

	leader   string // the last named leader, until tried
	named    string // the last named leader
	barred   string // a named leader that did not answer, or ""
	hops     int    // named leaders followed since the last pause
	turn     int    // which of the servers is next
	failures int    // attempts that failed since a server proved to lead
	tryAt    int64  // when to try one more server, 0 for never

	attempts  map[string]error // by address, why the last stream to it ended
	permanent map[string]error // those of them that trying again does not change
	learned   []string         // addresses of servers that are not configured
}

// Server returns the address of the server in use, or "".
func (l *Line) Server() string {
	if l.using == nil {
		return ""
	}
	return l.using.address
}

// Servers returns the addresses that were configured, then those that were learned.
func (l *Line) Servers() []string { return slices.Concat(l.cfg.Servers, l.learned) }

// Cluster returns the identity of the cluster, or "" if it is not known.
func (l *Line) Cluster() string { return l.identity }

// Attempt is the result of trying one server.
type Attempt struct {
	Server string
	Err    error // nil if it has not answered
}

// Attempts returns the result for each server, the configured ones first.
func (l *Line) Attempts() []Attempt {
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(l.attempts)), func(a string) bool { return slices.Contains(l.cfg.Servers, a) })
	var tried []Attempt
	for _, a := range slices.Concat(l.cfg.Servers, others) {
		tried = append(tried, Attempt{a, l.attempts[a]})
	}
	return tried
}

// leads reports whether the server in use has shown that it leads and still answers.
func (l *Line) leads() bool {
	return l.using != nil && l.using.proven && !l.suspect && !l.using.mute
}

// learn takes over the client addresses of the servers of the cluster. They may all differ from
// the configured ones by now.
func (l *Line) learn(servers []string) {
	l.learned = slices.DeleteFunc(slices.Clone(servers), func(s string) bool { return slices.Contains(l.cfg.Servers, s) })
	l.emit(Output{Action: Routed})
}

// bound reports whether the session belongs to a home and must stay there: it holds something,
// waits for something, or has been taken over.
func (l *Line) bound() bool {
	return l.cfg.Home && l.serves() && (l.session.moves || len(l.session.grants) > 0 || slices.ContainsFunc(l.session.unfinished(), (*Call).acquires))
}

// unbind gives up a session at a home that is not reachable, unless it is bound, so that another
// home can be used.
func (l *Line) unbind() {
	if l.cfg.Home && l.serves() && !l.bound() {
		l.session.retire(ErrSessionGone, false)
	}
}

// foreign reports whether a home that has answered is neither the one that the session is bound
// to, nor has taken that over. If it is the same server with a different seat, the session is
// gone.
func (l *Line) foreign(st *stream) bool {
	if !l.cfg.Home || !l.serves() || string(st.seat) == string(l.session.seat) {
		return false
	}
	if slices.ContainsFunc(st.adopted, func(seat []byte) bool { return string(seat) == string(l.session.seat) }) {
		l.session.seat, l.session.address, l.session.moves = st.seat, st.address, false
		return false
	}
	if st.address != l.session.address {
		return true
	}
	l.session.retire(ErrSessionGone, true)
	return false
}

// welcomes is called when a server of the cluster has answered.
func (l *Line) welcomes(st *stream) {
	if l.foreign(st) {
		l.replaced(st)
		return
	}
	if st.address == l.barred {
		l.barred = ""
	}
	switch {
	case l.using == nil, l.using.relayed && st.address == l.named && !l.suspect:
		l.adopt(st)
	case l.suspect:
		l.resend(st) // the first request that is carried out proves that the server leads
	default:
		l.replaced(st)
	}
}

// proves is called when a server has carried out its first request.
func (l *Line) proves(st *stream) {
	if st != l.using {
		if l.using != nil && !l.suspect {
			return
		}
		l.adopt(st)
	}
	l.failures, l.hops = 0, 0
	l.settle()
}

// adopt starts to use a stream: from now on all requests are sent over it, first those without a
// final reply, and the session is renewed.
func (l *Line) adopt(st *stream) {
	l.using, st.heard = st, l.now
	l.emit(Output{Action: Adopted, Address: st.address})
	l.emit(Output{Action: Routed})
	l.settle()
	l.resend(st)
	if l.serves() {
		l.session.renew()
	}
}

func (l *Line) settle() {
	l.suspect, l.tryAt = false, 0
	if l.using.relayed {
		l.tryAt = l.now + seekLeader
	}
	for _, st := range slices.Clone(l.streams) {
		// A stream to the leader may continue. One that was welcomed had its chance: it would
		// block the next attempt.
		seeking := l.using.relayed && !st.relayed && !st.welcomed && st.address == l.named
		if st != l.using && !seeking {
			l.replaced(st)
		}
	}
}

// late reports whether a stream has waited long for its Welcome.
func (l *Line) late(st *stream) bool { return !st.welcomed && l.now-st.opened >= stagger }

// replaced ends a stream that is not needed.
func (l *Line) replaced(st *stream) {
	if st.address == l.named && l.late(st) {
		l.barred = st.address
	}
	l.emit(Output{Action: HangUp, Stream: st.id, Address: st.address, Err: ErrReplaced})
	l.remove(st)
}

// remove removes a stream from the list. Sessions that are being opened over it are given up.
func (l *Line) remove(st *stream) {
	l.streams = slices.DeleteFunc(l.streams, func(other *stream) bool { return other == st })
	if l.using == st {
		l.using, l.suspect = nil, false
		l.emit(Output{Action: Routed})
	}
	l.abandon(func(s *Session) bool { return s.via == st.id })
}

// ended handles the end of a stream. leader is the address of the leader if it was named.
func (l *Line) ended(st *stream, err error, permanent bool, leader string) {
	inUse := st == l.using
	l.remove(st)
	l.recordFailure(st.address, err, permanent)
	if inUse {
		l.emit(Output{Action: Left, Address: st.address, Leader: leader, Err: err})
		l.unbind()
		l.replace()
	}
	if !st.welcomed && st.address == l.named {
		l.barred = st.address
	}
	if l.using != nil && !l.suspect {
		return
	}
	l.failures++
	if leader != "" && (leader != st.address || st.relayed) && l.hops < maxHops {
		l.hops++
		l.follow(st, leader)
		return
	}
	l.tryAt = l.now + Pause(l.failures, l.cfg.Chance)
}

// replace starts to use a server that was tried in addition to the one just lost.
func (l *Line) replace() {
	if i := slices.IndexFunc(l.streams, func(st *stream) bool { return st.welcomed }); i >= 0 {
		l.adopt(l.streams[i])
	}
}

// recordFailure records why a stream ended. If all configured servers have failed permanently before any
// has answered, it reports that going on is useless.
func (l *Line) recordFailure(address string, err error, permanent bool) {
	l.attempts[address] = err
	delete(l.permanent, address)
	if permanent {
		if l.permanent == nil {
			l.permanent = make(map[string]error)
		}
		l.permanent[address] = err
	}
	if l.attached || l.hopeless {
		return
	}
	for _, s := range l.cfg.Servers {
		if err = l.permanent[s]; err == nil {
			return
		}
	}
	l.hopeless = true
	l.emit(Output{Action: Hopeless, Err: err})
}

// follow tries the leader that a server has named. If that does not answer, the server that named
// it is asked to relay, once. Then the leader is tried again.
func (l *Line) follow(st *stream, leader string) {
	l.named = leader
	if l.cfg.Home {
		l.leader = leader
		l.attempt()
		return
	}
	late := slices.ContainsFunc(l.streams, func(other *stream) bool { return other.address == leader && l.late(other) })
	if !st.relayed && (late || leader == l.barred) {
		l.dial(st.address, true)
		return
	}
	l.barred, l.leader = "", leader
	l.attempt()
}

// Pause returns the backoff in ns after failures: 10 ms, growing by half for each, up to 250 ms.
// A random part of up to a half is taken off, so that clients spread out.
func Pause(failures int, chance func(n int64) int64) int64 {
	d := shortestBackoff
	for i := 1; i < failures && d < longestBackoff; i++ {
		d = min(d*3/2, longestBackoff)
	}
	return d - chance(d/2)
}

// attempt tries one more server, unless the search is over.
func (l *Line) attempt() {
	switch {
	case l.using == nil || l.suspect:
		l.tryAt = l.now + stagger
		if address := l.choose(); address != "" {
			l.dial(address, false)
		}
	case l.using.relayed:
		if !l.busy(l.named) {
			l.dial(l.named, false)
		}
		l.tryAt = l.now + seekLeader
	}
}

// busy reports whether an address is being tried. The address of the server in use counts as
// free, because the stream may be broken and not the server.
func (l *Line) busy(address string) bool {
	return slices.ContainsFunc(l.streams, func(st *stream) bool { return st != l.using && st.address == address })
}

// choose returns the address to try next, or "" if all are being tried.
func (l *Line) choose() string {
	if l.bound() {
		if l.busy(l.session.address) {
			return ""
		}
		return l.session.address
	}
	leader := l.leader
	l.leader = ""
	if leader != "" && !l.busy(leader) {
		return leader
	}
	servers := l.Servers()
	for range servers {
		l.turn = (l.turn + 1) % len(servers)
		if !l.busy(servers[l.turn]) {
			return servers[l.turn]
		}
	}
	return ""
}

// expireStreams gives up the streams whose server has not answered in time: with its Welcome or,
// if it is tried in addition to the one in use, to the requests that followed.
func (l *Line) expireStreams() {
	for _, st := range slices.Clone(l.streams) {
		silent := !st.welcomed && l.now-st.opened >= welcomeLimit ||
			st.welcomed && st != l.using && l.now-st.heard >= probeLimit
		if silent && slices.Contains(l.streams, st) {
			l.hangUp(st, ErrSilent, false, "")
		}
	}
}

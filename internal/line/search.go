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
	// stagger is how long one attempt is alone before the next server is tried. A
	// server that is stopped takes connections and never answers.
	stagger = 150 * ms
	// maxHops bounds how many namings of a leader are followed without a pause: two
	// servers may name each other.
	maxHops = 3
	// seekLeader is how often a client that another server relays tries to reach the
	// leader itself.
	seekLeader = 2000 * ms
)

// search looks for the leader as long as the Line lives. The first server that welcomes
// the client is used at once. If it does not lead it says so in the next frame. While
// the server in use is suspected, others are tried beside it, and the first that carries
// out a request replaces it. A server that is only slow stays in use.
//
// If the server that is said to lead cannot be reached, the servers that say so are
// asked to relay the stream. A relayed stream costs a hop and the follower's work, so the
// leader is preferred: it is tried again every seekLeader, and used when it answers.
type search struct {
	identity string // of the cluster, once known
	attached bool
	hopeless bool // it was told

	streams []*stream // all that have not ended
	dialled uint64    // streams so far
	using   *stream   // the one in use, or nil
	suspect bool      // the server in use leaves requests unanswered

	leader   string // who was named last, until tried
	named    string // who was named last
	barred   string // who was named and did not answer, or ""
	hops     int    // namings followed since the last pause
	turn     int    // which of the servers is next
	failures int    // attempts that failed since a server proved to lead
	tryAt    int64  // when to try one more server, 0 for never

	attempts  map[string]error // by address, why the last stream to it ended
	permanent map[string]error // those of them that will not change by themselves
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

// Attempt is what became of one server.
type Attempt struct {
	Server string
	Err    error // nil if it has not answered
}

// Attempts returns what became of each server, the configured ones first.
func (l *Line) Attempts() []Attempt {
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(l.attempts)), func(a string) bool { return slices.Contains(l.cfg.Servers, a) })
	var tried []Attempt
	for _, a := range slices.Concat(l.cfg.Servers, others) {
		tried = append(tried, Attempt{a, l.attempts[a]})
	}
	return tried
}

// leads reports whether the server in use has shown that it leads, and is there.
func (l *Line) leads() bool {
	return l.using != nil && l.using.proven && !l.suspect && !l.using.mute
}

// learn takes over where the servers of the cluster take clients. They may all be
// others by now than those that the configuration names.
func (l *Line) learn(servers []string) {
	l.learned = slices.DeleteFunc(slices.Clone(servers), func(s string) bool { return slices.Contains(l.cfg.Servers, s) })
	l.emit(Output{Action: Routed})
}

// moveTo has the session go on at the server that has taken over its home.
func (l *Line) moveTo(heir string) {
	if l.cfg.Home && l.serves() {
		l.session.address, l.session.moves = heir, true
	}
}

// bound reports whether the session is that of a home and must stay there: it holds
// something, or waits for it, or has been taken over.
func (l *Line) bound() bool {
	return l.cfg.Home && l.serves() && (l.session.moves || len(l.session.grants) > 0 || slices.ContainsFunc(l.session.unfinished(), (*Call).acquires))
}

// unbind gives up a session at a home that is not there, unless it is bound. Then another
// home is as good.
func (l *Line) unbind() {
	if l.cfg.Home && l.serves() && !l.bound() {
		l.session.retire(ErrSessionGone, false)
	}
}

// foreign reports whether a home that has answered is not the one that the session is
// bound to, and has not taken that over. If it is the same server and another seat, the
// session is gone.
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
		l.resend(st) // what is carried out first proves that its server leads
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

// adopt puts a stream in use: from now on all requests are sent over it, those without
// a final reply first, and the session is renewed.
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

// settle ends the search.
func (l *Line) settle() {
	l.suspect, l.tryAt = false, 0
	if l.using.relayed {
		l.tryAt = l.now + seekLeader
	}
	for _, st := range slices.Clone(l.streams) {
		// A stream to the leader may go on. One that was welcomed had its chance: kept,
		// it would stand in the way of the next attempt.
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

// remove takes a stream off the list. Sessions that are being opened over it will not be.
func (l *Line) remove(st *stream) {
	l.streams = slices.DeleteFunc(l.streams, func(other *stream) bool { return other == st })
	if l.using == st {
		l.using, l.suspect = nil, false
		l.emit(Output{Action: Routed})
	}
	l.abandon(func(s *Session) bool { return s.via == st.id })
}

// ended is the end of a stream. leader is the address of the leader if it was named.
func (l *Line) ended(st *stream, err error, permanent bool, leader string) {
	inUse := st == l.using
	l.remove(st)
	l.note(st.address, err, permanent)
	if inUse {
		l.emit(Output{Action: Left, Address: st.address, Err: err})
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

// replace puts a server in use that has been tried beside the one just lost.
func (l *Line) replace() {
	if i := slices.IndexFunc(l.streams, func(st *stream) bool { return st.welcomed }); i >= 0 {
		l.adopt(l.streams[i])
	}
}

// note remembers why a stream ended, and tells if it does no good to go on: before the
// first server has answered, if all configured ones fail for good.
func (l *Line) note(address string, err error, permanent bool) {
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

// follow goes where a server says that the leader is. If that does not answer, the
// server that names it is asked to relay, once. Then the leader is tried again.
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

// Pause is the backoff in ns after failures: 10 ms and half as much again for each, up
// to 250 ms. Chance shortens it by up to a half, so that clients spread out.
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

// busy reports whether an address is being tried. That of the server in use counts as
// free: the stream may be broken, and not the server.
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

// expireStreams gives up the streams whose server has not answered in time: with its
// Welcome, or, if it is tried beside the one in use, to the requests that followed.
func (l *Line) expireStreams() {
	for _, st := range slices.Clone(l.streams) {
		silent := !st.welcomed && l.now-st.opened >= welcomeLimit ||
			st.welcomed && st != l.using && l.now-st.heard >= probeLimit
		if silent && slices.Contains(l.streams, st) {
			l.hangUp(st, ErrSilent, false, "")
		}
	}
}

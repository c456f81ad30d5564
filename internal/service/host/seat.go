package host

import (
	"cmp"
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/process"
)

// seat is the session of this server at the leader (S3, S4): the commands that have no answer yet,
// and until when it has not lapsed.
type seat struct {
	*self
	id        registry.SessionID
	sequence  uint64 // of the newest command
	open      []order
	renewed   int64 // when the newest Renew was sent
	until     int64 // D_n: from here on the seat has lapsed
	since     int64 // when it was requested
	confirmed bool  // the leader or the log has confirmed it
	logged    bool  // the log has
	turned    bool  // another epoch was requested in this one
	closing   bool  // the leader was asked to end it: nothing is granted any more (S2, P1, P2)
}

// order is a command of the seat without an answer. It is sent again with the same number.
type order struct {
	registry.Command
	sent  int64 // when it was first sent
	last  int64 // when it was last sent
	again int64 // when to send it again
}

// never is the time for a command that is not sent again.
const never = 1<<63 - 1

// maxOrders bounds the unanswered Renews; beyond it the oldest are given up.
const maxOrders = 16

// mu is the margin of a holder between its deadline and the end of a promise of a given length: a
// tenth, at least 100 ms, and a third if the promise is shorter than 1 s (H4).
func mu(span int64) int64 {
	if span < 1e9 {
		return span / 3
	}
	return max(span/10, 100e6)
}

// reset discards the seat.
func (s *seat) reset() { *s = seat{self: s.self} }

// enter asks for the seat.
func (s *seat) enter() {
	s.id, s.since = registry.SeatID(s.ownSeat()), s.now
	s.order(registry.Command{Op: registry.OpEnter, TTL: s.cfg.lease(), Host: s.cfg.Host, PID: s.cfg.PID, Guarding: &registry.Guarding{Server: s.cfg.Server}})
}

// none reports whether there is no seat, and none was asked for.
func (s *seat) none() bool { return s.id == registry.SessionID{} }

// entered notes that the log has the seat, which is an answer to the request for it.
func (s *seat) entered() {
	s.confirmed, s.logged = true, true
	s.withdraw(func(o order) bool { return o.Op == registry.OpEnter })
}

// begin begins an epoch: what was asked of another one is void.
func (s *seat) begin() {
	s.turned = false
	s.withdraw(func(o order) bool { return o.Op == registry.OpTurn || o.Op == registry.OpQuiet })
}

// unheard reports whether the request for the seat seems to be lost. It is not sent again,
// because a late one would bring back a seat that has ended.
func (s *seat) unheard() bool {
	return !s.confirmed && slices.ContainsFunc(s.open, func(o order) bool {
		return o.Op == registry.OpEnter && o.again == never && s.now-o.last >= s.cfg.lease()
	})
}

// order queues a command for the seat.
func (s *seat) order(c registry.Command) {
	s.sequence++
	c.Session, c.Sequence = s.id, s.sequence
	s.open = append(s.open, order{Command: c, again: s.now})
}

// withdraw withdraws commands without an answer.
func (s *seat) withdraw(meant func(order) bool) { s.open = slices.DeleteFunc(s.open, meant) }

// askTurn asks for another epoch, once in each epoch.
func (s *seat) askTurn(why string) {
	if !s.turned {
		s.turned = true
		s.order(registry.Command{Op: registry.OpTurn, Value: why, Guarding: &registry.Guarding{Epoch: s.member.Epoch}})
	}
}

// orders returns the commands to send now.
func (s *seat) orders() (list []registry.Command) {
	low := s.sequence + 1
	for i := range s.open {
		low = min(low, s.open[i].Sequence)
	}
	for i := range s.open {
		o := &s.open[i]
		if o.again > s.now {
			continue
		}
		if o.sent == 0 {
			o.sent = s.now
		}
		o.last = s.now
		if o.again = s.now + s.cfg.lease()/12; o.Op.Renews() {
			o.again = never // each Renew gets a new number, and each seat its own OpEnter
		}
		o.Low = low
		list = append(list, o.Command)
	}
	return list
}

// renew is S3: a Renew every L/12, or every 10 ms while somebody waits that needs it soon.
func (s *seat) renew(soon bool) {
	every := s.cfg.lease() / 12
	if soon {
		every = min(every, 10e6)
	}
	if !s.confirmed || s.now < s.renewed+every {
		return
	}
	s.renewed = s.now
	s.order(registry.Command{Op: registry.OpRenew})
	renews := func(o order) bool { return o.Op == registry.OpRenew }
	if n := len(s.open); n > maxOrders {
		if oldest := slices.IndexFunc(s.open, renews); oldest < n-1 {
			s.open = slices.Delete(s.open, oldest, oldest+1)
		}
	}
}

// settle takes the leader's answer to a command. It returns the command if it is settled, and
// will not be sent again.
func (s *seat) settle(outcome *registry.Outcome) (settled order, is bool) {
	at, found := slices.BinarySearchFunc(s.open, outcome.Sequence, func(o order, n uint64) int { return cmp.Compare(o.Sequence, n) })
	if !found {
		return order{}, false
	}
	o := &s.open[at]
	switch code := outcome.Result.Code; {
	case code == registry.NotLeader || code == registry.Exhausted:
		if o.Op == registry.OpEnter {
			o.again = s.now + s.cfg.lease()/12
		}
		return order{}, false
	case code == registry.Unavailable:
		o.again = s.now + max(outcome.Result.Remaining, s.cfg.lease()/12)
		return order{}, false
	case code != registry.OK && o.Op == registry.OpEnter: // it is not recorded as a voter: that may change
		o.again = s.now + s.cfg.lease()/4
		return order{}, false
	}
	settled = *o
	s.open = slices.Delete(s.open, at, at+1)
	return settled, true
}

// extend notes that the leader renewed the seat for a time, counted from when the command was
// sent (S4). It reports whether the seat lapses later than before.
func (s *seat) extend(o *order, remaining int64) bool {
	s.confirmed = true
	until := o.sent + remaining - mu(s.cfg.lease())
	later := until > s.until
	s.until = max(s.until, until)
	return later
}

// lapse notes that the lease of the seat has lapsed, or is valid again (S4). It reports whether it
// is valid again.
func (s *seat) lapse() (again bool) {
	lapsed := s.now >= s.until || s.closing || s.leaving != stays
	again = s.member.Lapsed && !lapsed
	s.member.Lapsed = lapsed
	return again
}

// pause is until when the server gets no other seat, and how long the next pause is (S5).
type pause struct{ until, span int64 }

// next begins a pause after a seat that lasted for a time: 1 s, doubling each time up to 60 s, but
// 1 s again after a seat of ten minutes.
func (p *pause) next(now, seated int64) {
	if p.span == 0 || seated >= 600e9 {
		p.span = 1e9
	}
	p.until, p.span = now+p.span, min(2*p.span, 60e9)
}

// Report is what a member reports about the others with the commands of its seat (S7).
type Report struct {
	Epoch     uint64
	Reaches   []uint64 // servers to which frames can be sent
	Complains []uint64 // members that hold this one up
	Doubts    []uint64 // members that its detector suspects, or has declared failed
}

func (h *Host) report() (r Report) {
	r.Epoch, r.Doubts = h.member.Epoch, h.watch.doubts()
	long := h.cfg.lease() / 2
	for _, l := range h.links.list {
		if l.up {
			r.Reaches = append(r.Reaches, l.server)
		}
		rank := h.member.RankOf(l.server)
		if h.member.State == view.Out || rank == process.None {
			continue
		}
		missing := h.member.State == view.Resuming && h.member.Said && !slices.Contains(h.member.Resumed, rank)
		if l.stuck(h.now, long) || missing && (h.now-l.heard >= long || h.now-h.machines.opening.began >= 20*long) {
			r.Complains = append(r.Complains, l.server)
		}
	}
	return r
}

// enters reports whether the server should have a seat and has none (S2), or has asked for one and
// received no answer for so long that it should ask for another.
func (h *Host) enters() bool {
	return (h.seat.none() || h.seat.unheard()) && h.leaving == stays && h.serves && h.now >= h.pause.until
}

// orders returns the commands of the seat to send now.
func (h *Host) orders() []registry.Command {
	if h.seat.none() {
		return nil
	}
	h.seat.renew(h.asides.awaits() || h.home.hurries())
	return h.seat.orders()
}

// Answer takes the leader's answers to commands of the seat.
func (h *Host) Answer(now int64, outcomes []registry.Outcome) {
	defer h.guard()
	if h.output.Err != nil {
		return
	}
	h.begin(now)
	for i := range outcomes {
		if o := &outcomes[i]; o.Session == h.seat.id {
			h.answered(o)
		}
	}
	h.finish()
}

// answered takes one answer.
func (h *Host) answered(outcome *registry.Outcome) {
	code := outcome.Result.Code
	if code == registry.SessionGone {
		h.abandon("the seat has ended")
		return
	}
	o, settled := h.seat.settle(outcome)
	switch {
	case !settled:
	case o.Op == registry.OpClose && code == registry.OK:
		h.abandon(h.departure.whyClosed())
	case o.Op == registry.OpClose:
		h.departure.notClosed()
	case code == registry.OK && o.Op.Renews():
		h.renewal(&o, outcome.Result.Remaining)
	}
}

// renewal notes that the leader renewed the seat (S4), and answers those who wait for that (H4, P2).
func (h *Host) renewal(o *order, remaining int64) {
	if h.seat.extend(o, remaining) {
		h.nears.moved = h.nears.held > 0
	}
	h.home.promise(o.Sequence, remaining)
	h.asides.adopt(o.Sequence, remaining)
	h.checkLapse()
}

// checkLapse notes whether the seat has lapsed. When it is valid again, names may be asked for.
func (h *Host) checkLapse() {
	if h.seat.lapse() {
		h.machines.lookAgain()
	}
}

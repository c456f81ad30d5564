package host

import (
	"cmp"
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/process"
)

// seat is the session of this server at the leader (S3, S4).
type seat struct {
	id       registry.SessionID
	sequence uint64 // of the newest command
	open     []order
	renewed  int64 // when the newest Renew was sent
	until    int64 // D_n: from here on the seat has lapsed
	since    int64 // when it was requested
	closing  bool  // the leader was asked to end it: nothing is granted any more (S2, P1, P2)
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

// enters reports whether the server should have a seat and has none (S2), or has asked for one and
// received no answer for so long that it should ask for another.
func (h *Host) enters() bool {
	return (h.seat.id == registry.SessionID{} || h.unheard()) && h.leaving == stays && h.serves && h.now >= h.pause.until
}

// unheard reports whether the request for the seat seems to be lost. It is not sent again,
// because a late one would bring back a seat that has ended.
func (h *Host) unheard() bool {
	return !h.seated && slices.ContainsFunc(h.seat.open, func(o order) bool {
		return o.Op == registry.OpEnter && o.again == never && h.now-o.last >= h.cfg.lease()
	})
}

// Report is what a member reports about the others with the commands of its seat (S7).
type Report struct {
	Epoch     uint64
	Reaches   []uint64 // servers to which frames can be sent
	Complains []uint64 // members that hold this one up
	Doubts    []uint64 // members that its detector suspects, or has declared failed
}

func (h *Host) report() (r Report) {
	r.Epoch, r.Doubts = h.member.Epoch, h.doubts()
	long := h.cfg.lease() / 2
	for _, l := range h.links {
		if l.up {
			r.Reaches = append(r.Reaches, l.server)
		}
		rank := h.member.RankOf(l.server)
		if h.member.State == view.Out || rank == process.None {
			continue
		}
		missing := h.member.State == view.Resuming && h.member.Said && !slices.Contains(h.member.Resumed, rank)
		if l.stuck(h.now, long) || missing && (h.now-l.heard >= long || h.now-h.started >= 20*long) {
			r.Complains = append(r.Complains, l.server)
		}
	}
	return r
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

// enter asks for the seat.
func (h *Host) enter(id [2]uint64) {
	own := view.Seat{Server: h.cfg.Server, ID: id}
	h.seat = seat{id: registry.SeatID(own), since: h.now}
	h.order(registry.Command{Op: registry.OpEnter, TTL: h.cfg.lease(), Host: h.cfg.Host, PID: h.cfg.PID, Guarding: &registry.Guarding{Server: h.cfg.Server}})
}

// order queues a command for the seat.
func (h *Host) order(c registry.Command) {
	h.seat.sequence++
	c.Session, c.Sequence = h.seat.id, h.seat.sequence
	h.seat.open = append(h.seat.open, order{Command: c, again: h.now})
}

// orders returns the commands to send now.
func (h *Host) orders() (list []registry.Command) {
	if h.seat.id == (registry.SessionID{}) {
		return nil
	}
	h.renew()
	low := h.seat.sequence + 1
	for i := range h.seat.open {
		low = min(low, h.seat.open[i].Sequence)
	}
	for i := range h.seat.open {
		o := &h.seat.open[i]
		if o.again > h.now {
			continue
		}
		if o.sent == 0 {
			o.sent = h.now
		}
		o.last = h.now
		if o.again = h.now + h.cfg.lease()/12; o.Op.Renews() {
			o.again = never // each Renew gets a new number, and each seat its own OpEnter
		}
		o.Low = low
		list = append(list, o.Command)
	}
	return list
}

// renew is S3: a Renew every L/12, or every 10 ms while clients wait that need it.
func (h *Host) renew() {
	s := &h.seat
	every := h.cfg.lease() / 12
	if h.awaits() || slices.ContainsFunc(h.home.asks, func(a ask) bool { return h.short(a.session) }) {
		every = min(every, 10e6)
	}
	if !h.seated || h.now < s.renewed+every {
		return
	}
	s.renewed = h.now
	h.order(registry.Command{Op: registry.OpRenew})
	renews := func(o order) bool { return o.Op == registry.OpRenew }
	if n := len(s.open); n > maxOrders {
		if oldest := slices.IndexFunc(s.open, renews); oldest < n-1 {
			s.open = slices.Delete(s.open, oldest, oldest+1)
		}
	}
}

// short reports whether a session has a TTL below the lease of a seat.
func (h *Host) short(id registry.SessionID) bool {
	s, _ := h.home.reg.Session(id)
	return s.TTL < h.cfg.lease()
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
	s := &h.seat
	if outcome.Result.Code == registry.SessionGone {
		h.abandon("the seat has ended")
		return
	}
	at, found := slices.BinarySearchFunc(s.open, outcome.Sequence, func(o order, n uint64) int { return cmp.Compare(o.Sequence, n) })
	if !found {
		return
	}
	o := &s.open[at]
	switch outcome.Result.Code {
	case registry.NotLeader, registry.Exhausted:
		if o.Op == registry.OpEnter {
			o.again = h.now + h.cfg.lease()/12
		}
		return // it is sent again
	case registry.Unavailable:
		o.again = h.now + max(outcome.Result.Remaining, h.cfg.lease()/12)
		return
	case registry.OK:
		if o.Op == registry.OpClose {
			h.abandon(h.whyClosed())
			return
		}
		if o.Op.Renews() {
			h.seated = true
			h.renewal(o, outcome.Result.Remaining)
		}
	default:
		if o.Op == registry.OpClose {
			defer h.notClosed()
		}
		if o.Op == registry.OpEnter { // it is not recorded as a voter: that may change
			o.again = h.now + h.cfg.lease()/4
			return
		}
	}
	at = slices.IndexFunc(s.open, func(o order) bool { return o.Sequence == outcome.Sequence })
	s.open = slices.Delete(s.open, at, at+1)
}

// renewal notes that the leader renewed the seat for a time, counted from when the command was
// sent (S4), and answers the clients that wait for that (H4).
func (h *Host) renewal(o *order, remaining int64) {
	if until := o.sent + remaining - mu(h.cfg.lease()); until > h.seat.until {
		h.seat.until, h.near.moved = until, h.near.held > 0
	}
	h.promise(o.Sequence, remaining)
	h.adopt(o.Sequence, remaining)
	h.checkLapse()
}

// checkLapse notes that the lease of the seat has lapsed, or is valid again (S4).
func (h *Host) checkLapse() {
	lapsed := h.now >= h.seat.until || h.seat.closing || h.leaving != stays
	if lapsed == h.member.Lapsed {
		return
	}
	if h.member.Lapsed = lapsed; !lapsed {
		h.lookAgain()
	}
}

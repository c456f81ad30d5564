package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/process"
)

// leaving is the progress of a server that gives up its seat (P1, P2).
type leaving uint8

const (
	stays  leaving = iota
	hands          // it looks for a member that takes over its home
	leaves         // there is none: it accepts nothing new, and waits until nothing is held
	left           // it has no seat, and wants none
)

// handover is the progress of handing a home over to another member (P2).
type handover struct {
	since int64     // when it could begin
	to    view.Seat // the member that was asked; the home is frozen. Zero: none
	asked int64     // when
	tried []uint64  // servers that were asked in vain in this epoch
	named bool      // the log was told the heir: it can be undone only if the log refuses it
	early []early   // requests that came while the home was frozen
}

// early is a request that is processed later.
type early struct {
	conn uint64
	registry.Command
}

const (
	// handoverPart is the number of bytes in one frame of a handover, and maxHandover the most bytes
	// in all. A larger home is not handed over.
	handoverPart = 32 << 10
	maxHandover  = 32 << 20
)

// still reports whether the home is frozen: it answers, accepts and ends nothing, so that the
// data handed over stays valid (P2).
func (h *Host) still() bool { return h.handover.to != view.Seat{} }

// Leave makes this server give up its seat, so that the others need not wait for the end of its
// lease. It grants nothing any more. If possible, another member takes over what its clients hold
// and wait for (P2). Otherwise waiters are told to ask another member, and holders are asked to
// leave (P1). Then the seat is closed, and Output reports its end. A second call of Leave has no
// effect.
func (h *Host) Leave(now int64) {
	defer h.guard()
	if h.output.Err != nil || h.leaving != stays {
		return
	}
	h.begin(now)
	h.leaving, h.handover = hands, handover{since: h.now}
	h.checkLapse()
	h.refuseAsides()
	for in := h.local.first; in != nil; in = in.next {
		if h.bound(in) {
			h.askToLeave(in, h.stops(), "")
		}
	}
	h.answerAll()
	h.finish()
}

// bound reports whether a hold cannot be handed over: a hold of a program within this process, or
// one of several units. The heir may hold another unit of the same name, but has only one
// machine for the name.
func (h *Host) bound(in *instance) bool {
	if !in.state.Held {
		return false
	}
	return in.near != nil || in.prefix != nil && in.prefix.units || strings.HasPrefix(h.home.reg.HeldBy(in.name), "local:")
}

// stops is the reason that a stopping server gives to holders.
func (h *Host) stops() string { return fmt.Sprintf("server %d stops", h.cfg.Server) }

// askToLeave asks the holder of a name to leave; by is the principal that wants it.
func (h *Host) askToLeave(in *instance, why, by string) {
	if !h.askNear(in, 0, why, by) {
		h.home.reg.Revoke(&registry.Command{Name: in.name, Value: why, By: &registry.Origin{Actor: by}}, &h.home.fx)
	}
}

// depart continues leaving.
func (h *Host) depart() {
	switch {
	case h.leaving == stays || h.leaving == left || h.seat.closing:
		return
	case h.seat.id == (registry.SessionID{}):
		h.leaving = left
		return
	case h.still() && h.now-h.handover.asked < h.cfg.lease()/4:
		return
	}
	if h.still() {
		h.goOn()
	}
	held, bound, waits := false, false, false
	for in := h.local.first; in != nil; in = in.next {
		held, bound, waits = held || in.state.Held, bound || h.bound(in), waits || in.state.Wanted
	}
	switch {
	case h.inherits():
	case !held && (!waits || h.leaving == leaves):
		h.close(view.Seat{})
	case h.leaving == leaves:
	case bound:
		h.handover.since = h.now
	default:
		h.handOver()
	}
}

// handOver asks a member to take over the home (P2). If there is none, or it takes too long, all
// holds are revoked.
func (h *Host) handOver() {
	to, any := h.chooseHeir()
	if !any || h.now-h.handover.since >= h.cfg.lease() {
		h.revokeAll()
		return
	}
	if to == process.None {
		return // until a lane is up, or another epoch begins
	}
	h.refuseTries(h.now + 1<<62)
	data := h.appendHome(nil)
	if len(data) > maxHandover {
		h.revokeAll()
		return
	}
	h.handover.to, h.handover.asked = h.member.Members[to], h.now
	for len(data) > 0 {
		part := data[:min(len(data), handoverPart)]
		data = data[len(part):]
		h.send(to, &frame{kind: frameHandover, last: len(data) == 0, message: part})
	}
}

// chooseHeir returns the member to ask: among those that can be reached and were not
// asked in vain, the one with the newest seat. It has had the least time to get clients,
// and will not be the next one to stop if servers are stopped in turn. If to is None,
// wait for a lane. Any reports whether there is a member to ask or to wait for.
func (h *Host) chooseHeir() (to process.ID, any bool) {
	for _, s := range slices.Backward(h.seats) {
		rank := h.member.RankOf(s.Server)
		if rank == process.None || h.member.Members[rank] != s || s.Server == h.cfg.Server || slices.Contains(h.handover.tried, s.Server) {
			continue
		}
		if any = true; h.link(s.Server).up {
			return rank, true
		}
	}
	return process.None, any && h.member.State != view.Out
}

// goOn unfreezes the home, because it was not taken over.
func (h *Host) goOn() {
	waiting := h.handover.early
	h.handover.tried = append(h.handover.tried, h.handover.to.Server)
	h.handover.to, h.handover.early = view.Seat{}, nil
	h.obey()
	h.answerAll()
	h.resubmit(waiting)
}

// resubmit processes requests that had to wait.
func (h *Host) resubmit(waiting []early) {
	for i := range waiting {
		h.submit(waiting[i].conn, &waiting[i].Command)
	}
}

// hold queues a request.
func (h *Host) hold(queue *[]early, conn uint64, c *registry.Command) {
	if len(*queue) >= maxAsks {
		h.refuse(conn, c, registry.Exhausted, "too many requests wait until the home is taken over: try again")
		return
	}
	*queue = append(*queue, early{conn, *c})
}

// onAdopted is the answer of a member that has set the home aside, and whose seat outlasts the
// promises to clients. The log is told that it is the heir.
func (h *Host) onAdopted(from process.ID) {
	if h.member.Members[from] == h.handover.to && !h.seat.closing {
		h.handover.named = true
		h.close(h.handover.to)
	}
}

// onRefused is the answer of a member that does not take over the home.
func (h *Host) onRefused(from process.ID) {
	if h.member.Members[from] == h.handover.to && !h.seat.closing {
		h.goOn()
	}
}

// revokeAll refuses all waiters, and asks all holders to leave (P1).
func (h *Host) revokeAll() {
	h.leaving = leaves
	refusal := h.notMember()
	for in := h.local.first; in != nil; in = in.next {
		if in.state.Wanted {
			h.home.reg.RefuseAll(in.name, &refusal, &h.home.fx)
		}
		if in.state.Held {
			h.askToLeave(in, h.stops(), "")
		}
	}
	h.answerAll()
}

// close asks the leader to end the seat and, if there is an heir, to let its clients continue
// there. From now on nothing is granted here.
func (h *Host) close(heir view.Seat) {
	h.refuseAsides()
	h.seat.closing = true
	c := registry.Command{Op: registry.OpClose}
	if heir != (view.Seat{}) {
		c.Guarding = &registry.Guarding{Heir: heir}
	}
	h.order(c)
	h.checkLapse()
}

// notClosed is the leader's refusal of the heir: the home continues.
func (h *Host) notClosed() {
	if h.handover.named {
		h.seat.closing, h.handover.named = false, false
		h.goOn()
	}
}

// appendHome appends the data to hand over: the seats whose clients may still look for their
// home, and the home.
func (h *Host) appendHome(b []byte) []byte {
	seats := h.Adopted()
	b = wire.AppendUint(b, uint64(len(seats)))
	for _, s := range seats {
		b = append(b, s[:]...)
	}
	return h.home.reg.AppendHome(b, func(id registry.SessionID) int64 { return h.home.leases.Remaining(id, h.leaseClock()) })
}

// notMember is the answer to a client that should ask another server.
func (h *Host) notMember() registry.Result {
	return registry.Result{Code: registry.NotMember, Message: fmt.Sprintf("server %d takes no part in the view: ask a member", h.cfg.Server)}
}

// whyClosed returns why the server has closed its seat.
func (h *Host) whyClosed() string {
	switch {
	case h.handover.named:
		return fmt.Sprintf("the server stops, and server %d takes its clients over", h.handover.to.Server)
	case h.leaving != stays:
		return "the server stops"
	}
	return "no algorithm guards any name"
}

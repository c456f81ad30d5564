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

const (
	// handoverPart is the number of bytes in one frame of a handover, and maxHandover the most bytes
	// in all. A larger home is not handed over.
	handoverPart = 32 << 10
	maxHandover  = 32 << 20
)

// departure is the progress of a server that gives up its seat: it hands its home over to another
// member (P2) or, if there is none, asks its clients to leave (P1).
type departure struct {
	*self
	home     *home
	machines *machines
	links    *links
	seat     *seat
	asides   *asides

	handover
	seats []view.Seat // that live, in the order of entering
}

// handover is the progress of handing a home over to another member (P2).
type handover struct {
	since int64     // when it could begin
	to    view.Seat // the member that was asked, while the home is frozen
	asked int64     // when
	tried []uint64  // servers that were asked in vain in this epoch
	named bool      // the log was told the heir: it can be undone only if the log refuses it
}

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
	h.departure.start()
	h.finish()
}

// start begins to leave: what cannot be handed over is asked for at once.
func (d *departure) start() {
	d.leaving, d.handover = hands, handover{since: d.now}
	d.seat.lapse()
	d.asides.refuse()
	for in := d.machines.local.first; in != nil; in = in.next {
		if d.bound(in) {
			d.home.askToLeave(in, d.stops(), "")
		}
	}
	d.home.answerAll()
}

// reset ends the handover with the seat (S5).
func (d *departure) reset() { d.handover, d.seats = handover{}, nil }

// begin begins an epoch: any member may be asked again.
func (d *departure) begin() {
	d.tried = nil
	if d.home.frozen && !d.seat.closing {
		d.goOn() // what the other member was told is no longer valid
	}
}

// bound reports whether a hold cannot be handed over: a hold of a program within this process, or
// one of several units. The heir may hold another unit of the same name, but has only one
// machine for the name.
func (d *departure) bound(in *instance) bool {
	if !in.state.Held {
		return false
	}
	return in.near != nil || in.prefix != nil && in.prefix.units || strings.HasPrefix(d.home.reg.HeldBy(in.name), "local:")
}

// stops is the reason that a stopping server gives to holders.
func (d *departure) stops() string { return fmt.Sprintf("server %d stops", d.cfg.Server) }

// depart continues leaving.
func (d *departure) depart() {
	switch {
	case d.leaving == stays || d.leaving == left || d.seat.closing:
		return
	case d.seat.none():
		d.leaving = left
		return
	case d.home.frozen && d.now-d.asked < d.cfg.lease()/4:
		return
	}
	if d.home.frozen {
		d.goOn()
	}
	held, bound, waits := false, false, false
	for in := d.machines.local.first; in != nil; in = in.next {
		held, bound, waits = held || in.state.Held, bound || d.bound(in), waits || in.state.Wanted
	}
	switch {
	case d.asides.inherits():
	case !held && (!waits || d.leaving == leaves):
		d.close(view.Seat{})
	case d.leaving == leaves:
	case bound:
		d.since = d.now
	default:
		d.handOver()
	}
}

// handOver asks a member to take over the home (P2). If there is none, or it takes too long, all
// holds are revoked.
func (d *departure) handOver() {
	to, any := d.chooseHeir()
	if !any || d.now-d.since >= d.cfg.lease() {
		d.revokeAll()
		return
	}
	if to == process.None {
		return // until a lane is up, or another epoch begins
	}
	d.home.refuseTries(d.now + 1<<62)
	data := d.appendHome(nil)
	if len(data) > maxHandover {
		d.revokeAll()
		return
	}
	d.to, d.asked, d.home.frozen = d.member.Members[to], d.now, true
	for len(data) > 0 {
		part := data[:min(len(data), handoverPart)]
		data = data[len(part):]
		d.links.send(to, &frame{kind: frameHandover, last: len(data) == 0, message: part})
	}
}

// chooseHeir returns the member to ask: among those that can be reached and were not
// asked in vain, the one with the newest seat. It has had the least time to get clients,
// and will not be the next one to stop if servers are stopped in turn. If to is None,
// wait for a lane. Any reports whether there is a member to ask or to wait for.
func (d *departure) chooseHeir() (to process.ID, any bool) {
	for _, s := range slices.Backward(d.seats) {
		rank := d.member.RankOf(s.Server)
		if rank == process.None || d.member.Members[rank] != s || s.Server == d.cfg.Server || slices.Contains(d.tried, s.Server) {
			continue
		}
		if any = true; d.links.to(s.Server).up {
			return rank, true
		}
	}
	return process.None, any && d.member.State != view.Out
}

// goOn continues with the home, because it was not taken over.
func (d *departure) goOn() {
	d.tried, d.to = append(d.tried, d.to.Server), view.Seat{}
	d.home.thaw()
}

// onAdopted is the answer of a member that has set the home aside, and whose seat outlasts the
// promises to clients. The log is told that it is the heir.
func (d *departure) onAdopted(from process.ID) {
	if d.member.Members[from] == d.to && !d.seat.closing {
		d.named = true
		d.close(d.to)
	}
}

// onRefused is the answer of a member that does not take over the home.
func (d *departure) onRefused(from process.ID) {
	if d.member.Members[from] == d.to && !d.seat.closing {
		d.goOn()
	}
}

// revokeAll refuses all waiters, and asks all holders to leave (P1).
func (d *departure) revokeAll() {
	d.leaving = leaves
	refusal := d.home.notMember()
	for in := d.machines.local.first; in != nil; in = in.next {
		if in.state.Wanted {
			d.home.reg.RefuseAll(in.name, &refusal, &d.home.fx)
		}
		if in.state.Held {
			d.home.askToLeave(in, d.stops(), "")
		}
	}
	d.home.answerAll()
}

// close asks the leader to end the seat and, if there is an heir, to let its clients continue
// there. From now on nothing is granted here.
func (d *departure) close(heir view.Seat) {
	d.asides.refuse()
	d.seat.closing = true
	c := registry.Command{Op: registry.OpClose}
	if heir != (view.Seat{}) {
		c.Guarding = &registry.Guarding{Heir: heir}
	}
	d.seat.order(c)
	d.seat.lapse()
}

// notClosed is the leader's refusal of the heir: the home continues.
func (d *departure) notClosed() {
	if d.named {
		d.seat.closing, d.named = false, false
		d.goOn()
	}
}

// appendHome appends the data to hand over: the seats whose clients may still look for their
// home, and the home.
func (d *departure) appendHome(b []byte) []byte {
	seats := d.asides.seats()
	b = wire.AppendUint(b, uint64(len(seats)))
	for _, s := range seats {
		b = append(b, s[:]...)
	}
	return d.home.reg.AppendHome(b, func(id registry.SessionID) int64 { return d.home.leases.Remaining(id, d.leaseClock()) })
}

// whyClosed returns why the server has closed its seat.
func (d *departure) whyClosed() string {
	switch {
	case d.named:
		return fmt.Sprintf("the server stops, and server %d takes its clients over", d.to.Server)
	case d.leaving != stays:
		return "the server stops"
	}
	return "no algorithm guards any name"
}

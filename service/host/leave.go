package host

import (
	"fmt"

	"github.com/conclave-io/conclave/service/registry"
)

// leaving says how far a server is that gives up its seat (P1).
type leaving uint8

const (
	stays  leaving = iota
	leaves         // it takes nothing new, and waits until nothing is held
	left           // it has no seat, and wants none
)

// Leave has this server give up its seat, so that the others need not wait until its lease
// is over (P1). It takes no new session and no request to acquire any more. Who waits is
// told to ask another member, and who holds is asked to leave. When nothing is held the
// seat is closed, and Output says that it is over. Leave does nothing the second time.
func (h *Host) Leave(now int64) {
	defer h.guard()
	if h.output.Err != nil || h.leaving != stays {
		return
	}
	h.begin(now)
	h.leaving = leaves
	refusal := h.notMember()
	for in := h.local.first; in != nil; in = in.next {
		if in.state.Wanted {
			h.home.reg.RefuseAll(in.name, &refusal, &h.home.fx)
		}
		if in.state.Held {
			h.home.reg.Revoke(&registry.Command{Name: in.name, Value: fmt.Sprintf("server %d stops", h.cfg.Server)}, &h.home.fx)
		}
	}
	h.answerAll()
	h.finish()
}

// closeSeat closes the seat of a server that leaves, when nothing is held.
func (h *Host) closeSeat() {
	if h.leaving != leaves || h.seat.closing {
		return
	}
	if h.seat.id == (registry.SessionID{}) {
		h.leaving = left
		return
	}
	for in := h.local.first; in != nil; in = in.next {
		if in.state.Held {
			return
		}
	}
	h.close()
}

// close asks the leader to end the seat. From now on nothing is granted here.
func (h *Host) close() {
	h.seat.closing = true
	h.order(registry.Command{Op: registry.OpClose})
	h.checkLapse()
}

// notMember is the answer to a client that is to ask another server.
func (h *Host) notMember() registry.Result {
	return registry.Result{Code: registry.NotMember, Message: fmt.Sprintf("server %d takes no part in the view: ask a member", h.cfg.Server)}
}

// whyClosed says why the server has closed its seat.
func (h *Host) whyClosed() string {
	if h.leaving != stays {
		return "the server stops"
	}
	return "no algorithm guards any name"
}

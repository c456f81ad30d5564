package host

import (
	"fmt"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// Serving reports whether clients may use this home: this server is a member, and was able to
// promise something during the last lease (H7).
func (h *Host) Serving() bool {
	return h.output.Err == nil && h.member.State != view.Out && (!h.member.Lapsed || h.now < h.seat.until+h.cfg.lease())
}

// Seat returns the id by which clients know this home, and the lease beyond which it promises
// nothing.
func (h *Host) Seat() (seat registry.SessionID, lease int64) { return h.seat.id, h.cfg.lease() }

// Adopted returns the seats whose clients find their sessions here: seats taken over recently,
// and seats that may be taken over (H2).
func (h *Host) Adopted() []registry.SessionID { return h.asides.seats() }

// Successor returns the server at which this server's clients continue after its seat has
// ended, or 0 (P2).
func (h *Host) Successor() uint64 { return h.successor }

// Submit takes the requests of a client that the caller knows as conn. Each is answered by a
// Reply. If the seat ends first, each session is told that it is gone.
func (h *Host) Submit(now int64, conn uint64, commands []registry.Command) {
	defer h.guard()
	if h.output.Err != nil {
		return
	}
	h.begin(now)
	for i := range commands {
		if !commands[i].Op.Renews() {
			h.watch.requests.made++
		}
		h.home.submit(conn, &commands[i])
	}
	h.finish()
}

// Drop notes that a stream has ended.
func (h *Host) Drop(conn uint64) { h.home.drop(conn) }

// Revoke asks the holder of a name, or the hold with a fence, to leave. The result has the fence
// of the hold, or says that no client of this home has one. A hold that is still there after
// T_h is dropped (H9).
func (h *Host) Revoke(now int64, c *registry.Command) (result registry.Result) {
	defer h.guard()
	if h.output.Err != nil {
		return registry.Result{Code: registry.NotFound, Message: "this server is no home any more"}
	}
	h.begin(now)
	if h.home.frozen {
		return h.handsOver()
	}
	result = h.home.reg.Revoke(c, &h.home.fx)
	h.home.answerAll()
	if in := h.machines.names[c.Name]; result.Code == registry.NotFound && h.nears.ask(in, c.Fence, c.Value, c.Origin().Actor) {
		result = registry.Result{Code: registry.OK, Fence: in.near.Fence}
	}
	h.finish()
	return result
}

// EndSession ends a session of this home for an operator: its waits are withdrawn, and its holds
// are revoked as by Revoke (H9). It returns the number of holds that are left, or an error.
func (h *Host) EndSession(now int64, c *registry.Command) (holds int, result registry.Result) {
	defer h.guard()
	if h.output.Err != nil {
		return 0, registry.NoSession(c.Session)
	}
	h.begin(now)
	if h.home.frozen {
		return 0, h.handsOver()
	}
	result = h.home.reg.Dismiss(c, &h.home.fx)
	h.home.answerAll()
	h.finish()
	if result.Code == registry.NotFound {
		if holds = h.nears.askOwner(c); holds > 0 {
			return holds, registry.Result{Code: registry.OK}
		}
	}
	s, _ := h.home.reg.Session(c.Session)
	return s.Holds, result
}

// handsOver is the answer to requests of operators while the home is frozen for a handover.
func (h *Host) handsOver() registry.Result {
	return registry.Result{Code: registry.Unavailable, Message: fmt.Sprintf("another server takes over the clients of server %d: try again", h.cfg.Server)}
}

package node

import (
	"github.com/conclave-io/conclave/internal/service/guarded/home"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/transport"
)

// The log decides which servers take part in guarding names by algorithms. The node passes what
// the log says to package home, and the requests of the members to the leader.

// newHome returns what serves names under algorithms at this server.
func (n *Node) newHome() *home.Home {
	return home.New(home.Config{
		Server: n.cfg.ID, Lease: n.cfg.ViewLease, Wall: n.cfg.wall, Leader: n.metrics.Leader.Load, Done: n.done, OnHold: n.onHold(), Log: n.log,
	})
}

// Home returns what serves names under algorithms at this server.
func (n *Node) Home() *home.Home { return n.home }

// submitOwnOrders carries out, as the leader, the commands of this server's own seat.
func (n *Node) submitOwnOrders() {
	for _, o := range n.home.TakeOrders() {
		n.replica.SubmitSeat(now(), n.cfg.ID, o.Commands, o.Report)
	}
}

// answerSeats delivers the replies to the commands of seats.
func (n *Node) answerSeats(replies []replica.SeatReply) {
	for len(replies) > 0 {
		server, outcomes := replies[0].Server, []registry.Outcome(nil)
		for len(replies) > 0 && replies[0].Server == server {
			outcomes, replies = append(outcomes, replies[0].Outcome), replies[1:]
		}
		if server == n.cfg.ID {
			n.home.Answer(outcomes)
		} else {
			n.net.SendTold(server, home.AppendAnswers(nil, outcomes))
		}
	}
}

// updateHome gives the home the rules and settings as the log has them, if they have changed, and then, if
// view is set, the seats and guards: a seat that has just entered grants nothing by older rules.
func (n *Node) updateHome(view bool) {
	reg := n.replica.Registry()
	if rules := reg.Rules(); rules != n.shown {
		n.shown = rules
		n.home.SetRules(rules)
	}
	if set := reg.Settings(); set != n.set {
		n.set = set
		n.home.SetSettings(set)
	}
	if view {
		n.home.SetView(reg.Guarded())
	}
}

// Seat implements transport.Handler.
func (h *handler) Seat(peer uint64, text []byte) {
	o, err := home.ReadOrders(text)
	if err != nil {
		return // from a later release
	}
	h.post(func(r *replica.Replica) { r.SubmitSeat(now(), peer, o.Commands, o.Report) })
}

// Told implements transport.Handler.
func (h *handler) Told(_ uint64, text []byte) {
	outcomes, err := home.ReadAnswers(text)
	if err != nil {
		return // from a later release
	}
	h.node.home.Answer(outcomes)
}

// Lane implements transport.Handler.
func (h *handler) Lane(peer uint64, lane *transport.Lane) { h.node.home.SetLane(peer, lane) }

// Frames implements transport.Handler.
func (h *handler) Frames(peer uint64, batch []byte) error { return h.node.home.Receive(peer, batch) }

package superpeer

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// onAttach is R5 at the node that is asked, which is always before the asker.
func (m *machine) onAttach(msg *process.Message, fx *process.Effects) {
	switch {
	case m.is(super):
		m.serve(msg, attachedType, fx)
	case m.is(client):
		fx.Rule(ruleR5a)
		fx.Send(msg.From, process.Message{Type: redirectType, Seq: msg.Seq, Subject: m.sp, Value: int64(m.depth)})
	default:
		fx.Rule(ruleR5b)
		fx.Send(msg.From, process.Message{Type: busyType, Seq: msg.Seq})
	}
}

// onPing is R8 at the super-peer. A PING of a node that is no longer a client is a
// request.
func (m *machine) onPing(msg *process.Message, fx *process.Effects) {
	if !m.is(super) {
		m.onAttach(msg, fx)
		return
	}
	m.serve(msg, pongType, fx)
}

// serve accepts a client, or keeps it, if it belongs to the segment and there is room.
// If there is no room, the segment is halved until there is.
func (m *machine) serve(msg *process.Message, answer process.Type, fx *process.Effects) {
	p := msg.From
	i, found := slices.BinarySearch(m.clients, p)
	for !found && m.full() && m.mine(p) {
		m.narrow(fx)
		i, found = slices.BinarySearch(m.clients, p)
	}
	if !m.mine(p) {
		fx.Rule(ruleR10)
		fx.Send(p, process.Message{Type: splitType, Seq: msg.Seq, Value: int64(m.ring.shared(m.self, p) + 1)})
		return
	}
	if !found {
		fx.Rule(ruleR5)
		m.clients = slices.Insert(m.clients, i, p)
		m.silent = slices.Insert(m.silent, i, 0)
		answer = attachedType
	}
	m.silent[i] = 0
	fx.Send(p, process.Message{Type: answer, Seq: msg.Seq, Value: int64(m.depth)})
}

// full reports whether there is no room.
func (m *machine) full() bool { return len(m.clients) >= m.cap && !m.flaw.NoSplit }

// mine reports whether p is in the segment.
func (m *machine) mine(p process.ID) bool { return m.ring.shared(m.self, p) >= m.depth }

// narrow is R10: one bit more, and the clients in the other half must leave.
func (m *machine) narrow(fx *process.Effects) {
	fx.Rule(ruleR10)
	m.depth++
	kept := 0
	for i, p := range m.clients {
		if !m.mine(p) {
			fx.Send(p, process.Message{Type: splitType, Value: int64(m.depth)})
			continue
		}
		m.clients[kept], m.silent[kept] = p, m.silent[i]
		kept++
	}
	m.clients, m.silent = m.clients[:kept], m.silent[:kept]
}

// onMerge is R11 at the first node of the larger segment. The segment is at most half
// full after that, so that the next few clients do not split it again. Other
// super-peers in the segment, with still narrower ones, ask for themselves at their
// next check.
func (m *machine) onMerge(msg *process.Message, fx *process.Effects) {
	k := int(msg.Value)
	fits := 2*(len(m.clients)+len(msg.IDs)+1) <= m.cap
	if !m.is(super) || !fits || k < 1 || m.ring.shared(m.self, msg.From) < k-1 {
		fx.Rule(ruleR5b)
		fx.Send(msg.From, process.Message{Type: busyType, Seq: msg.Seq})
		return
	}
	fx.Rule(ruleR11)
	m.depth = max(m.base, min(m.depth, k-1))
	m.serve(msg, attachedType, fx)
}

// forgetSilent drops clients that were not heard for three checks. They have crashed,
// or gone elsewhere.
func (m *machine) forgetSilent() {
	kept := 0
	for i, p := range m.clients {
		if m.silent[i] < 3 {
			m.clients[kept], m.silent[kept] = p, m.silent[i]+1
			kept++
		}
	}
	m.clients, m.silent = m.clients[:kept], m.silent[:kept]
}

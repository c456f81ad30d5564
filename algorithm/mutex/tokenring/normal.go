package tokenring

import "github.com/conclave-io/conclave/process"

// hopsOfState and hopOfMessage name the hops, which grow forever while the token goes
// round. Hops are only compared within one term, and only increased. A new term starts
// at 0, once.
func hopsOfState(m process.Machine, visit func(group uint64, p *uint64)) {
	ring := m.(*machine)
	visit(uint64(ring.term), &ring.hop)
}

func hopOfMessage(msg *process.Message, visit func(group uint64, p *uint64)) {
	if msg.Type == token || msg.Type == ack {
		visit(uint64(msg.Term), &msg.Seq)
	}
}

package tokenring

import "github.com/conclave-io/conclave/process"

// hopsOfState and hopOfMessage name the hops, which grow for ever while the token
// goes round. They are compared with those of the same term only, and raised; who
// begins a term begins with 0, and does so once.
func hopsOfState(m process.Machine, visit func(group uint64, p *uint64)) {
	ring := m.(*machine)
	visit(uint64(ring.term), &ring.hop)
}

func hopOfMessage(msg *process.Message, visit func(group uint64, p *uint64)) {
	if msg.Type == token || msg.Type == ack {
		visit(uint64(msg.Term), &msg.Seq)
	}
}

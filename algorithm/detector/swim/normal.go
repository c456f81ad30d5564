package swim

import "github.com/conclave-io/conclave/process"

// normal puts the probe numbers of a process into a group. They are compared only with
// that of its last probe, which is above all others, and so is the next.
var normal = &process.Normal{Ordered: true, State: probesOfState, Message: probeOfMessage}

func probesOfState(m process.Machine, visit func(group uint64, p *uint64)) {
	d := m.(*machine)
	visit(uint64(d.self), &d.probes)
}

// probeOfMessage finds the prober: it is the sender of a PING-REQ, and the subject of
// messages that belong to one.
func probeOfMessage(msg *process.Message, visit func(group uint64, p *uint64)) {
	switch msg.Type {
	case ping, ack:
		visit(uint64(msg.Subject), &msg.Seq)
	case pingReq:
		visit(uint64(msg.From), &msg.Seq)
	}
}

package swim

import "github.com/conclave-io/conclave/process"

// normal puts the numbers of the probes of a process into a group. They are compared
// with that of its last probe only, which is above all others, and so is the next.
var normal = &process.Normal{Ordered: true, State: probesOfState, Message: probeOfMessage}

func probesOfState(m process.Machine, visit func(group uint64, p *uint64)) {
	d := m.(*machine)
	visit(uint64(d.self), &d.probes)
}

// probeOfMessage knows who probes from the sender of a PING-REQ, and from the subject
// of what belongs to one.
func probeOfMessage(msg *process.Message, visit func(group uint64, p *uint64)) {
	switch msg.Type {
	case ping, ack:
		visit(uint64(msg.Subject), &msg.Seq)
	case pingReq:
		visit(uint64(msg.From), &msg.Seq)
	}
}

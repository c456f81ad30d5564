package heartbeat

import "github.com/conclave-io/conclave/process"

// normal puts the ALIVE numbers of one incarnation of a process into a group. They are
// compared only with others of the same incarnation (R2, R2a), and a new one is above
// all that were sent.
var normal = &process.Normal{Ordered: true, State: numbersOfState, Message: numberOfMessage}

func numbersOfState(m process.Machine, visit func(group uint64, p *uint64)) {
	d := m.(*machine)
	visit(beatsOf(d.self, d.incarnation), &d.n)
	for p := range d.heard {
		visit(beatsOf(process.ID(p), d.known[p]), &d.heard[p])
	}
}

func numberOfMessage(msg *process.Message, visit func(group uint64, p *uint64)) {
	visit(beatsOf(msg.From, uint64(msg.Value)), &msg.Seq)
}

func beatsOf(p process.ID, incarnation uint64) uint64 { return uint64(p)<<32 | incarnation }

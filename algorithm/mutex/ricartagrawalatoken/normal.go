package ricartagrawalatoken

import "github.com/conclave-io/conclave/process"

// stampsOfState and stampsOfMessage put the stamps of each process into a group of
// their own, with its clock. A stamp is compared only with others of the same process:
// its latest request with its entry in the token. New stamps come from its clock, which
// is never behind them. Messages of others move the clock further ahead, and how far
// does not matter.
func stampsOfState(m process.Machine, visit func(group uint64, p *uint64)) {
	r := m.(*machine)
	visit(uint64(r.self), &r.clock)
	if r.waiting {
		visit(uint64(r.self), &r.stamp) // R8 repeats it
	} else {
		visit(process.Void, &r.stamp)
	}
	for k := range r.request {
		visit(uint64(k), &r.request[k])
		visit(uint64(k), &r.token[k])
	}
}

func stampsOfMessage(msg *process.Message, visit func(group uint64, p *uint64)) {
	if msg.Type == req {
		visit(uint64(msg.From), &msg.Clock)
		return
	}
	visit(process.Void, &msg.Clock)
	for k := range msg.Vector {
		visit(uint64(k), &msg.Vector[k])
	}
}

package ricartagrawalatoken

import "github.com/conclave-io/conclave/process"

// stampsOfState and stampsOfMessage put the stamps of each process into a group of
// their own, with its clock. A stamp of a process is compared with others of the same
// process only, namely its latest request with its entry in the token, and a new one
// comes from its clock, which is never behind them. What others tell the clock moves
// it further ahead of them, and how far does not matter.
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

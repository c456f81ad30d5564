package view

import "github.com/conclave-io/conclave/process"

// The numbers that a lock lets a host normalise begin again in each epoch, so the epoch
// is part of their group.

// normalState visits the numbers of the machine and of the kept frames. If there is no
// machine in the present epoch, the next one will begin with 0.
func (o *over) normalState(m process.Machine, visit func(group uint64, p *uint64)) {
	h, ok := m.(*home)
	if !ok || h.member.State == Out {
		epoch, zero := uint64(MaxEpoch), uint64(0)
		if ok {
			epoch = h.seen.Epoch + 1
		}
		visit(uint64(termOf(epoch)), &zero)
	} else {
		o.lock.Normal.State(h.machine, in(h.member.Epoch, visit))
	}
	if ok {
		for i := range h.kept {
			o.normalMessage(&h.kept[i], visit)
		}
	}
}

func (o *over) normalMessage(msg *process.Message, visit func(group uint64, p *uint64)) {
	if msg.Type <= msgLock {
		return
	}
	t, term := msg.Type, msg.Term
	msg.Type, msg.Term = t-msgLock, 0
	o.lock.Normal.Message(msg, in(term.Round(), visit))
	msg.Type, msg.Term = t, term
}

// in puts the groups of the lock into an epoch.
func in(epoch uint64, visit func(group uint64, p *uint64)) func(group uint64, p *uint64) {
	return func(group uint64, p *uint64) {
		if group != process.Void {
			group += uint64(termOf(epoch))
		}
		visit(group, p)
	}
}

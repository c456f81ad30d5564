package world

import (
	"math/rand/v2"

	"github.com/conclave-io/conclave/internal/service/registry"
)

const (
	// stateLimit is the largest limit of a server, in bytes. A part of it is always used, because
	// the servers remember how holds of up to 1,024 names ended.
	stateLimit = 480 << 10
	// floodValue is the size of each value in a flood, in plans with limits.
	floodValue = 2 << 10
	// limitSlack is how much a state may exceed the limit. Releases, cancels, renewals and the ends
	// of holds are always accepted, and their answers use memory. A cancel that comes before its
	// request has two answers of 48 bytes together.
	limitSlack = 64<<10 + 8*registry.MaxAnswers/2*48
	// limitSettles is the time after which a leader knows the size of the state and has applied
	// older requests.
	limitSettles = 1000 * ms
)

// limited is the judge's record of the size of the state under a leader.
type limited struct {
	term  uint64
	since int64
	most  int // the maximum size
}

// bounds checks that a state at its limit grows no further under a leader that has led for a while.
// An earlier leader may have left a larger state.
func (j *judge) bounds(s *Server) {
	l, size := &j.limited, s.Replica.Registry().Size()
	if !s.Replica.Leading() || s.Replica.Term() < l.term {
		return
	}
	if l.term != s.Replica.Term() {
		*l = limited{term: s.Replica.Term(), since: s.w.Now}
	}
	if s.w.Now-l.since < limitSettles {
		l.most = max(size, stateLimit) + limitSlack
	} else if size > l.most {
		s.w.Violate("limit", "the state has %d bytes, under a leader that has let it grow to %d at most", size, l.most)
	}
}

// expectations are an operator who sets and removes rules about the names that workers ask for. It has
// its own random source.
type expectations struct {
	w     *World
	rng   *rand.Rand
	asked int
}

// operate sets or removes a rule from time to time.
func (x *expectations) operate() {
	if x.w.Now >= x.w.end {
		return
	}
	x.w.After(300*ms+x.rng.Int64N(3000*ms), x.operate)
	res := x.w.Judge.resources[x.rng.IntN(len(x.w.Judge.resources))]
	c := registry.Command{Op: registry.OpExpect, Class: res.Class, Name: res.Name}
	if x.rng.IntN(5) > 0 {
		c.Every = 1000*ms + x.rng.Int64N(60_000*ms)
	}
	x.asked++
	c.By = &registry.Origin{Actor: "cert:operator", Request: [16]byte{0: 2, 14: byte(x.asked >> 8), 15: byte(x.asked)}}
	if leader := x.w.Leader(); leader != nil {
		leader.Receive(func() { leader.Replica.Submit(leader.TellTime(), OperatorConn, []registry.Command{c}) })
	}
}

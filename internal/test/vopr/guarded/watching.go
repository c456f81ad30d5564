package guarded

import (
	"math/rand/v2"

	"github.com/conclave-io/conclave/algorithm/served"
	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/test/vopr/world"
)

// watching is the part of a world in which members of a view run a failure detector and an
// election. An operator changes their settings, and calls elections. This part has its own random
// source, so that plans without it stay the same.
type watching struct {
	*hosting
	rng *rand.Rand
}

func newWatching(l *hosting) *watching {
	x := &watching{l, rand.New(rand.NewPCG(l.w.Plan.Seed, 12))}
	l.w.After(1500*ms, x.operate)
	return x
}

// operate changes the settings or calls an election from time to time. The timeouts are such that
// slow members are sometimes suspected, but never without a fault.
func (x *watching) operate() {
	if x.w.Healed {
		return
	}
	x.w.After((200+x.rng.Int64N(8000))*ms, x.operate)
	if x.last.Watch.Algorithm != "" && x.rng.IntN(3) > 0 {
		for _, s := range x.w.Servers {
			s.Receive(func() {
				if s.Host != nil {
					s.Host.Campaign(s.Now())
				}
			})
		}
		return
	}
	var u view.Use
	if x.rng.IntN(6) > 0 {
		u.Algorithm = served.Detectors[x.rng.IntN(len(served.Detectors))].Name + "+" + served.Elections[x.rng.IntN(len(served.Elections))].Name
		u.Options = []string{"", "delay=20000", "delay=100000"}[x.rng.IntN(3)]
	}
	if leader := x.w.Leader(); leader != nil {
		x.asked++
		c := registry.Command{Op: registry.OpGuard, Class: registry.View, Value: "chance", Guarding: &registry.Guarding{Use: u}, By: &registry.Origin{Actor: "cert:operator", Request: [16]byte{0: 1, 14: byte(x.asked >> 8), 15: byte(x.asked)}}}
		leader.Receive(func() { leader.Replica.Submit(leader.TellTime(), world.OperatorConn, []registry.Command{c}) })
	}
}

// coordinated sometimes makes the elected member coordinate the names under a guard.
func (x *watching) coordinated(u view.Use) view.Use {
	if x != nil && u.Guarded() && x.rng.IntN(2) == 0 {
		options := "coordinator=elected"
		if u.Options != "" {
			options += "," + u.Options
		}
		u.Options = options
	}
	return u
}

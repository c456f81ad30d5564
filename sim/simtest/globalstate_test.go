package simtest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/conclave-io/conclave/algorithm/clock/vector"
	"github.com/conclave-io/conclave/algorithm/globalstate"
	"github.com/conclave-io/conclave/algorithm/mutex/raymond"
	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawala"
	"github.com/conclave-io/conclave/algorithm/mutex/suzukikasami"
	"github.com/conclave-io/conclave/algorithm/mutex/tokenring"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/sim"
	"github.com/conclave-io/conclave/sim/simtest"
)

// TestOneTokenInEveryCut records global states of token algorithms under load.
// Wherever the token is, each state shows it exactly once.
func TestOneTokenInEveryCut(t *testing.T) {
	for _, top := range []*process.Spec{tokenring.Spec, suzukikasami.Spec, raymond.Spec} {
		for _, n := range []int{1, 2, 5} {
			t.Run(fmt.Sprintf("%s/n=%d", top.Name, n), func(t *testing.T) {
				t.Parallel()
				seen := &cuts{}
				recorded(t, over(t, top, globalstate.Spec), n, seen.oneToken)
				seen.check(t, n)
			})
		}
	}
}

// TestCutsOfOthers: the recorder does not care what it records, nor what carries
// its own messages.
func TestCutsOfOthers(t *testing.T) {
	for _, spec := range []*process.Spec{
		over(t, ricartagrawala.Spec, globalstate.Spec),
		over(t, tokenring.Spec, vector.Spec, globalstate.Spec),
		over(t, tokenring.Spec, globalstate.Spec, vector.Spec),
	} {
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			seen := &cuts{}
			recorded(t, spec, 4, seen.count)
			seen.check(t, 4)
		})
	}
}

// recorded runs random schedules in which processes ask for global states, now
// and then two at once.
func recorded(t *testing.T, spec *process.Spec, n int, judge sim.Judge) {
	t.Helper()
	simtest.Plan{
		Spec: spec, Process: process.Config{N: n, Options: defaults(spec)}, Judges: []sim.Judge{judge},
		Adjust: func(cfg *sim.Config, seed uint64) {
			cfg.Limit.Until, cfg.Limit.Events = 80*process.Millisecond, 5_000 // some tokens go round for ever
			r := rand.New(rand.NewPCG(seed, 7))
			for range 6 {
				cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{
					Kind: process.Record, Process: process.ID(r.IntN(n)), At: process.Duration(r.Int64N(60 * int64(process.Millisecond))),
				})
			}
		},
	}.Run(t)
}

// cuts counts what was recorded over all schedules.
type cuts struct{ states, onLink int }

func (c *cuts) check(t *testing.T, n int) {
	t.Helper()
	if c.states < 200 || n > 1 && c.onLink == 0 {
		t.Errorf("%d states were recorded, and %d tokens or messages on links; want at least one a schedule, and some", c.states, c.onLink)
	}
}

// count is a judge without an opinion.
func (c *cuts) count(w *sim.World) sim.Watcher {
	return sim.Watcher{Name: "count", Watch: func(*sim.Observation) string { return "" }, End: func() string {
		for _, g := range w.Result().GlobalStates {
			c.states++
			c.onLink += len(g.OnLink)
		}
		return ""
	}}
}

// oneToken judges every recorded state.
func (c *cuts) oneToken(w *sim.World) sim.Watcher {
	return sim.Watcher{Name: "one token", Watch: func(*sim.Observation) string { return "" }, End: func() string {
		for _, g := range w.Result().GlobalStates {
			c.states++
			held, onLink := tokens(w, &g)
			c.onLink += onLink
			if held+onLink != 1 {
				return fmt.Sprintf("in the state that %d asked for %d processes have the token, and %d are on links", g.Asker, held, onLink)
			}
		}
		return ""
	}}
}

// tokens counts those that somebody has, and those on their way.
func tokens(w *sim.World, g *sim.GlobalState) (held, onLink int) {
	for p, views := range g.States {
		for _, v := range views {
			self := v.Name == "holder" && v.String() == w.Config().Text(process.ID(p)) && w.Spec().Needs.Topology == process.Tree
			if (v.Name == "has" || v.Name == "token") && v.Value == true || self {
				held++
			}
		}
	}
	for _, m := range g.OnLink {
		switch w.Spec().Message(m.Layer, m.Type).Name {
		case "TOKEN", "PRIV":
			onLink++
		}
	}
	return held, onLink
}

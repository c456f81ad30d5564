package simtest_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm/clock/vector"
	"github.com/conclave-io/conclave/algorithm/globalstate"
	"github.com/conclave-io/conclave/algorithm/mutex/raymond"
	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawala"
	"github.com/conclave-io/conclave/algorithm/mutex/suzukikasami"
	"github.com/conclave-io/conclave/algorithm/mutex/tokenring"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/sim/simtest"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// TestOneTokenInEveryCut records global states of token algorithms under load. Each state
// has the token exactly once. It may have none during a takeover, which unbounded delays
// sometimes cause.
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

// TestOneTokenInCutsOfTakeovers records global states of a token ring with repeated
// takeovers: before the promises, between the promises and the new token, and while the
// new token is in flight.
func TestOneTokenInCutsOfTakeovers(t *testing.T) {
	spec := *over(t, tokenring.Spec, globalstate.Spec)
	spec.Claims.Properties = slices.DeleteFunc(slices.Clone(spec.Claims.Properties), func(c process.Claim) bool {
		return c.Property == process.BoundedBypass // it says: while no takeover begins, and its judge sees none of these
	})
	for _, n := range []int{2, 3, 5} {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			t.Parallel()
			seen := &cuts{}
			recorded(t, &spec, n, seen.oneToken, takeovers)
			seen.check(t, n)
			if os.Getenv("SEED") == "" && (seen.between < 20 || seen.handed < 20 || seen.later < 200) {
				t.Errorf("%d states have no token, %d a new one that is not known yet, %d are of later terms; want more", seen.between, seen.handed, seen.later)
			}
		})
	}
}

// takeovers lets processes win elections from time to time, while others ask for the
// global state.
func takeovers(cfg *sim.Config, r *rand.Rand) {
	for round := range uint64(4) {
		at, leader := process.Duration(r.Int64N(60*int64(ms))), process.ID(r.IntN(cfg.Process.N))
		cfg.Workload.Commands = append(cfg.Workload.Commands,
			sim.Command{Kind: process.Elected, Process: leader, Peer: leader, Term: process.MakeTerm(round+1, leader), At: at},
			sim.Command{Kind: process.Record, Process: process.ID(r.IntN(cfg.Process.N)), At: at + process.Duration(r.Int64N(3*int64(ms)))},
		)
	}
}

// TestCutsOfOthers: the recorder works with any algorithm above it, and with any carrier
// below it.
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

// recorded runs random schedules in which processes ask for global states, sometimes two
// at once. Adjust adds the rest.
func recorded(t *testing.T, spec *process.Spec, n int, judge sim.Judge, more ...func(*sim.Config, *rand.Rand)) {
	t.Helper()
	simtest.Plan{
		Spec: spec, Process: process.Config{N: n, Options: defaults(spec)}, Judges: []sim.Judge{judge},
		Adjust: func(cfg *sim.Config, seed uint64) {
			cfg.Limit.Until, cfg.Limit.Events = 80*process.Millisecond, 5_000 // some tokens go round forever
			r := rand.New(rand.NewPCG(seed, 7))
			for range 6 {
				cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{
					Kind: process.Record, Process: process.ID(r.IntN(n)), At: process.Duration(r.Int64N(60 * int64(process.Millisecond))),
				})
			}
			for _, add := range more {
				add(cfg, r)
			}
		},
	}.Run(t)
}

// cuts counts what was recorded over all schedules: of the states, those without a
// token, those in which only NEWEPOCH makes it, and those of later terms than the
// first.
type cuts struct{ states, onLink, between, handed, later int }

func (c *cuts) check(t *testing.T, n int) {
	t.Helper()
	if os.Getenv("SEED") == "" && (c.states < 200 || n > 1 && c.onLink == 0) {
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
			seen := tokensOf(w, &g)
			c.add(&seen)
			all := seen.held + seen.handed + seen.onLink
			if all > 1 || all == 0 && seen.promised == seen.begun {
				return fmt.Sprintf("in the state that %d asked for %d processes have the token, and %d are on links", g.Asker, seen.held, seen.onLink+seen.handed)
			}
		}
		return ""
	}}
}

func (c *cuts) add(seen *tokens) {
	c.states++
	c.onLink += seen.onLink
	c.handed += seen.handed
	if seen.held+seen.handed+seen.onLink == 0 {
		c.between++
	}
	if seen.begun > 0 {
		c.later++
	}
}

// tokens returns the tokens of a global state. A process that promises destroys its
// token, and accepts no token of an older term. A term begins when all have promised. So
// all held tokens are of the latest term, and tokens of older terms on links no longer
// count. When all promises are kept, there is one.
type tokens struct {
	held, onLink    int
	handed          int          // NEWEPOCH on its way to who is named in it
	begun, promised process.Term // the latest of all
}

func tokensOf(w *sim.World, g *sim.GlobalState) (s tokens) {
	for p, views := range g.States {
		for _, v := range views {
			self := v.Name == "holder" && v.String() == w.Config().Text(process.ID(p)) && w.Spec().Needs.Topology == process.Tree
			switch {
			case (v.Name == "has" || v.Name == "token") && v.Value == true || self:
				s.held++
			case v.Name == "epoch":
				s.begun = max(s.begun, *v.Pointer.(*process.Term))
			case v.Name == "promised":
				s.promised = max(s.promised, *v.Pointer.(*process.Term))
			}
		}
	}
	for _, m := range g.OnLink {
		if m.Term != s.begun {
			continue
		}
		switch name := w.Spec().Message(m.Layer, m.Type).Name; {
		case property.IsToken(name):
			s.onLink++
		case name == "NEWEPOCH" && m.Subject == m.To:
			s.handed++
		}
	}
	return s
}

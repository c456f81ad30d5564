package check_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/algorithm/served"
	"github.com/conclave-io/conclave/algorithm/view/viewcheck"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// viewed is a search of the protocol of views with an algorithm as the lock.
type viewed struct {
	lock       string
	servers    int
	asks       int // how many clients ask
	entries    int
	options    string // such as "faults=1 changes=1"; live: look for runs that continue forever, too
	states     uint64
	properties []process.Property
	flaw       viewcheck.Flaw
	broken     process.Property
	depth      int // of a violation
}

func (v *viewed) config(t *testing.T) check.Config {
	t.Helper()
	lock := algorithm.Find(v.lock)
	if lock == nil {
		t.Fatalf("there is no algorithm %s", v.lock)
	}
	c := check.Config{
		Spec: v.flaw.Over(lock), Process: process.Config{N: v.servers + viewcheck.Others},
		Entries: v.entries, Properties: v.properties,
	}
	for p := range process.ID(v.asks) {
		c.Requesters = append(c.Requesters, p)
	}
	for _, o := range strings.Fields(v.options) {
		name, value, option := strings.Cut(o, "=")
		if c.Liveness = c.Liveness || !option; option {
			c.Process.Options = append(c.Process.Options, process.OptionValue{Name: name, Value: value})
		}
	}
	return c
}

func (v *viewed) run(t *testing.T) {
	t.Helper()
	r, err := check.Run(t.Context(), v.config(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, %d states, %d transitions, depth %d, %v, %v", r.Verdict, r.States, r.Transitions, r.Depth, r.Elapsed, r.Broken)
	if v.broken == "" && r.Verdict != check.Proved || !breaks(r, v.broken) {
		t.Fatalf("%s %s: %v", r.Verdict, r.Stopped, r.Broken)
	}
	if v.broken != "" && r.Depth != v.depth || v.states != 0 && r.States != v.states {
		t.Errorf("%d states, depth %d; want %d states, depth %d", r.States, r.Depth, v.states, v.depth)
	}
	if v.broken != "" && v.flaw == (viewcheck.Flaw{}) {
		replayed(t, r)
	}
}

// Every algorithm keeps its promises while a server dies and restarts, or loses its
// connection to the log and is renewed or expires.
var views = []viewed{
	{lock: "central", servers: 2, asks: 2, states: 2839},
	{lock: "central-clock", servers: 2, asks: 2, states: 12314},
	{lock: "token-ring", servers: 2, asks: 2, options: "live", states: 4627},
	{lock: "lamport", servers: 2, asks: 2, states: 10829},
	{lock: "ricart-agrawala", servers: 2, asks: 2, states: 4475},
	{lock: "ricart-agrawala", servers: 2, asks: 2, options: "mode=keep", states: 4467},
	{lock: "ricart-agrawala-token", servers: 2, asks: 2, states: 2930},
	{lock: "suzuki-kasami", servers: 2, asks: 2, states: 2930},
	{lock: "raymond", servers: 2, asks: 2, states: 2930},
	{lock: "naimi-trehel", servers: 2, asks: 2, states: 2930},
	{lock: "singhal", servers: 2, asks: 2, states: 2929},
	{lock: "maekawa", servers: 2, asks: 2, states: 6958},
	{lock: "majority", servers: 2, asks: 2, states: 3130},
	{lock: "k-ricart-agrawala", servers: 2, asks: 2, states: 5482},
	{lock: "suzuki-kasami", servers: 2, asks: 2, options: "faults=0 changes=2", states: 3990},
	{lock: "central", servers: 2, asks: 2, options: "faults=0 changes=2 guard=agreement", states: 4524},
	{lock: "suzuki-kasami", servers: 2, asks: 2, options: "faults=1 changes=1", states: 79294},
	{lock: "suzuki-kasami", servers: 3, asks: 1, states: 32588},
	{lock: "suzuki-kasami", servers: 2, asks: 2, options: "faults=1 leaves=1", states: 113170},
	{lock: "ricart-agrawala", servers: 3, asks: 2, options: "faults=0 leaves=1", states: 453917},
	// Of k units only the numbers are unique: a fence of the epoch before may come after
	// one that its process could have heard of.
	{lock: "k-ricart-agrawala", servers: 2, asks: 2, properties: []process.Property{process.FencesGrowCausally},
		broken: process.FencesGrowCausally, depth: 9},
}

func TestViews(t *testing.T) {
	for i := range views {
		v := &views[i]
		t.Run(strings.TrimSpace(v.lock+" "+v.options), v.run)
	}
}

// Every algorithm that servers run is among them.
func TestViewsOfAll(t *testing.T) {
	for _, spec := range served.Locks {
		if spec.Depth() == 1 && !slices.ContainsFunc(views, func(v viewed) bool { return v.lock == spec.Name }) {
			t.Errorf("%s is in no search", spec.Name)
		}
	}
}

// Each rule is needed: without it a small world breaks a promise.
func TestViewFlaws(t *testing.T) {
	for name, v := range map[string]viewed{
		"ends seats at once": {flaw: viewcheck.Flaw{EndsSeatsAtOnce: true}, lock: "suzuki-kasami", broken: process.MutualExclusion, depth: 5},
		"tells lapsed":       {flaw: viewcheck.Flaw{TellsLapsed: true}, lock: "suzuki-kasami", broken: process.MutualExclusion, depth: 7},
		"takes new seats":    {flaw: viewcheck.Flaw{TakesNewSeats: true}, lock: "suzuki-kasami", broken: process.MutualExclusion, depth: 10},
		"skips the barrier":  {flaw: viewcheck.Flaw{SkipsBarrier: true}, lock: "ricart-agrawala", broken: process.MutualExclusion, depth: 13},
		"forgets holds":      {flaw: viewcheck.Flaw{ForgetsHolds: true}, lock: "suzuki-kasami", broken: process.MutualExclusion, depth: 10},
		"resumes early":      {flaw: viewcheck.Flaw{ResumesEarly: true}, lock: "suzuki-kasami", servers: 3, broken: process.MutualExclusion, depth: 15},
		"takes old frames":   {flaw: viewcheck.Flaw{TakesOldFrames: true}, lock: "ricart-agrawala", broken: process.MutualExclusion, depth: 14},
		"drops new frames":   {flaw: viewcheck.Flaw{DropsNewFrames: true}, lock: "ricart-agrawala", broken: process.Progress, depth: 12},
		"bare fences":        {flaw: viewcheck.Flaw{BareFences: true}, lock: "suzuki-kasami", broken: process.FencesGrow, depth: 5},
		"quiet while held":   {flaw: viewcheck.Flaw{QuietWhileHeld: true}, lock: "suzuki-kasami", options: "faults=0 changes=1", broken: process.MutualExclusion, depth: 10},
		"feeds draining":     {flaw: viewcheck.Flaw{FeedsDraining: true}, lock: "suzuki-kasami", options: "faults=0 changes=1", broken: process.MutualExclusion, depth: 10},
		"switches at once":   {flaw: viewcheck.Flaw{SwitchesAtOnce: true}, lock: "suzuki-kasami", options: "faults=0 changes=1", broken: process.MutualExclusion, depth: 6},
		"ignores promises":   {flaw: viewcheck.Flaw{IgnoresPromise: true}, lock: "suzuki-kasami", options: "faults=1 leaves=1", broken: process.MutualExclusion, depth: 12},
		"takes while still":  {flaw: viewcheck.Flaw{TakesWhileStill: true}, lock: "suzuki-kasami", options: "faults=0 leaves=1", broken: assertion, depth: 10},
		"quiet in any epoch": {flaw: viewcheck.Flaw{QuietInAny: true}, lock: "suzuki-kasami", options: "faults=0 changes=1 leaves=1", broken: process.MutualExclusion, depth: 13},
		"keeps a late grant": {flaw: viewcheck.Flaw{IgnoresLateGrant: true}, lock: "suzuki-kasami", entries: 2, broken: process.Progress, depth: 16},
	} {
		if v.asks = 2; v.servers == 0 {
			v.servers = 2
		}
		t.Run(name, v.run)
	}
}

// Two members do not show whether RESUMED waits for the grants.
func TestViewFlawTooSmall(t *testing.T) {
	v := viewed{flaw: viewcheck.Flaw{ResumesEarly: true}, lock: "suzuki-kasami", servers: 2, asks: 2, states: 3068}
	v.run(t)
}

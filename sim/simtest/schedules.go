package simtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/sim"
	"github.com/conclave-io/conclave/trace"
)

// Schedules runs an algorithm among n processes under random schedules and fails
// on the first in which a promise of its Spec is broken. Each schedule draws
// delays, load, and faults of the kinds that the Spec says it survives, for each
// combination of its named options in turn.
//
// There are 200 schedules, or as many as the environment variable SEEDS says;
// SEED=7 runs the schedule of that seed alone. A failure prints how it ended.
func Schedules(t *testing.T, spec *process.Spec, n int) {
	t.Helper()
	Plan{Spec: spec, Process: process.Config{N: n}}.Run(t)
}

// Plan is what Schedules varies. Spec and Process.N must be set.
type Plan struct {
	Spec *process.Spec
	// Process is what all schedules have in common; if it names options, only
	// these are used. Delays are drawn.
	Process process.Config
	// Special reports whether a process has a part to play that the algorithm
	// may not survive losing. Nil: it holds the token, which is whoever a
	// message called TOKEN or PRIVILEGE was sent to last, at first the
	// coordinator of the topology; without such messages, the coordinator.
	Special func(w *sim.World, p process.ID) bool
	// Judges watch besides those of the claims.
	Judges []sim.Judge
	// Adjust changes the schedule of a seed before it runs. It may be nil.
	Adjust func(cfg *sim.Config, seed uint64)
}

// Run runs all schedules.
func (p Plan) Run(t *testing.T) {
	t.Helper()
	from, to := seeds(t)
	outcomes := 0
	for seed := from; seed < to; seed++ {
		s := p.schedule(seed)
		result, err := s.run(nil)
		if err != nil {
			t.Fatal(err)
		}
		outcomes += result.Entries + len(result.Leaders)
		if len(result.Violations) > 0 {
			t.Fatalf("SEED=%d: %s\n%s", seed, result.Violations[0], s.story())
		}
	}
	family := p.Spec.Layer(uint8(p.Spec.Depth() - 1)).Family
	if outcomes == 0 && (family == process.Mutex || family == process.Election) {
		t.Errorf("nobody entered and nobody was elected in %d schedules", to-from)
	}
}

func seeds(t *testing.T) (from, to uint64) {
	t.Helper()
	number := func(name string, byDefault uint64) uint64 {
		text := os.Getenv(name)
		if text == "" {
			return byDefault
		}
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			t.Fatalf("%s is %q, it must be a number", name, text)
		}
		return n
	}
	if os.Getenv("SEED") != "" {
		from = number("SEED", 0)
		return from, from + 1
	}
	return 0, number("SEEDS", 200)
}

// schedule is one random run.
type schedule struct {
	plan    *Plan
	seed    uint64
	cfg     sim.Config
	crashes []crash
	token   process.ID // where it is, or is going
	// withdrawn are those whose last request was withdrawn: for the others, who
	// may not know that yet, they still wait.
	withdrawn process.Set
}

// crash happens after a number of events, to a process that may crash then.
type crash struct {
	after   uint64
	rank    int // where to begin looking for one
	inStep  bool
	effects int
	down    process.Duration // 0: for good
}

func (p *Plan) schedule(seed uint64) *schedule {
	r := rand.New(rand.NewPCG(seed, uint64(p.Process.N)))
	s := &schedule{plan: p, seed: seed}
	s.cfg = sim.Config{Spec: p.Spec, Process: p.Process, Seed: seed}
	if p.Process.Options == nil {
		combinations := combine(p.Spec.AllOptions())
		s.cfg.Process.Options = combinations[seed%uint64(len(combinations))]
	}
	s.drawLinks(r)
	s.drawLoad(r)
	s.drawCrashes(r)
	if p.survives(process.Slowness) || p.Spec.Needs.Detector == process.NoDetector && !p.Spec.Needs.Synchrony {
		s.drawPauses(r)
	}
	if p.Adjust != nil {
		p.Adjust(&s.cfg, seed)
	}
	s.cfg.Judges = append(sim.Claimed(p.Spec, &s.cfg.Process), p.Judges...)
	return s
}

// combine returns every combination of the options that have named values.
func combine(options []process.Option) [][]process.OptionValue {
	all := [][]process.OptionValue{nil}
	for _, o := range options {
		var longer [][]process.OptionValue
		for _, value := range o.Values {
			for _, c := range all {
				longer = append(longer, append(c[:len(c):len(c)], process.OptionValue{Name: o.Name, Value: value}))
			}
		}
		if longer != nil {
			all = longer
		}
	}
	return all
}

func (p *Plan) survives(fault process.Fault) bool {
	for _, s := range p.Spec.Claims.Survives {
		if s.Fault == fault {
			return true
		}
	}
	return false
}

const d = process.Millisecond

// drawLinks draws delays that D bounds, unless the algorithm does not care.
func (s *schedule) drawLinks(r *rand.Rand) {
	needs := s.plan.Spec.Needs
	delays := []sim.Delay{sim.Constant(d), sim.Uniform(d/10, d), sim.Uniform(1, d)}
	if !needs.Synchrony {
		delays = append(delays, sim.Exponential(d/10, d), sim.Exponential(0, d))
	}
	l := &s.cfg.Links.Link
	if s.cfg.Process.Delay = d; needs.Causal {
		l.Delay = sim.Constant(d) // equal delays everywhere keep happened-before
		return
	}
	l.Delay = delays[r.IntN(len(delays))]
	l.Unordered = !needs.FIFO && r.IntN(2) == 0
	if s.plan.survives(process.Reorder) && !needs.FIFO && !needs.Synchrony {
		l.Reorder = []float64{0, 0, 0.2}[r.IntN(3)]
	}
	if s.plan.survives(process.Duplication) && !needs.NoDuplication {
		l.Duplicate = []float64{0, 0.1, 0.3}[r.IntN(3)]
	}
	if s.plan.survives(process.Loss) && !needs.Reliable {
		l.Drop = []float64{0, 0.05, 0.2}[r.IntN(3)]
	}
}

// drawLoad draws who asks when: everyone all the time, everyone now and then, or
// by commands that come to an end.
func (s *schedule) drawLoad(r *rand.Rand) {
	n := s.cfg.Process.N
	load := &s.cfg.Workload
	load.Section = []sim.Delay{sim.Constant(1), sim.Constant(2 * d), sim.Uniform(1, 5*d)}[r.IntN(3)]
	s.cfg.Process.Section = max(1, load.Section.Mean())
	s.cfg.Limit = sim.Limit{Entries: 10 * n, Events: uint64(20_000 * (n + 1))}
	if s.plan.Spec.Layer(uint8(s.plan.Spec.Depth()-1)).Family == process.Mutex {
		switch r.IntN(3) {
		case 0:
			load.Regime = sim.Saturated
			return
		case 1:
			load.Regime, load.Think = sim.Loaded, sim.Exponential(0, process.Duration(r.IntN(4*n)+1)*d)
			return
		}
	}
	s.cfg.Limit.Entries = 0
	for range 4*n + r.IntN(8*n) {
		load.Commands = append(load.Commands, s.drawCommand(r))
	}
}

func (s *schedule) drawCommand(r *rand.Rand) sim.Command {
	n := s.cfg.Process.N
	c := sim.Command{Process: process.ID(r.IntN(n)), At: process.Duration(r.Int64N(int64(n+1) * 20 * int64(d)))}
	switch s.plan.Spec.Layer(uint8(s.plan.Spec.Depth() - 1)).Family {
	case process.Mutex:
		c.Kind = []process.Kind{process.Acquire, process.Acquire, process.Acquire, process.Release, process.Cancel}[r.IntN(5)]
	case process.Election:
		c.Kind = process.Campaign
	default:
		c.Kind, c.Value = process.Propose, r.Int64N(100)
	}
	return c
}

// drawCrashes draws up to half of the processes, as far as some may crash.
func (s *schedule) drawCrashes(r *rand.Rand) {
	p := s.plan
	for range r.IntN((p.Process.N-1)/2 + 1) {
		c := crash{after: r.Uint64N(uint64(60 * p.Process.N)), rank: r.IntN(p.Process.N), effects: r.IntN(p.Process.N + 3)}
		c.inStep = r.IntN(2) == 0 && p.anyMayCrash()
		if p.survives(process.AmnesiaRestart) && r.IntN(4) > 0 {
			c.down = process.Duration(1 + r.Int64N(40*int64(d)))
		}
		s.crashes = append(s.crashes, c)
	}
}

func (p *Plan) anyMayCrash() bool {
	return p.survives(process.CrashAny) || p.survives(process.CrashBystander) && p.survives(process.CrashWaiter) &&
		p.survives(process.CrashHolder) && p.survives(process.CrashSpecial)
}

// mayCrash reports whether the algorithm survives a crash of q now.
func (s *schedule) mayCrash(w *sim.World, q process.ID) bool {
	p, status := s.plan, w.Status(q)
	switch {
	case status.Down:
		return false
	case p.anyMayCrash():
		return true
	case !p.survives(process.CrashSpecial) && s.isSpecial(w, q):
		return false
	case status.Inside:
		return p.survives(process.CrashHolder)
	case status.Waiting || s.withdrawn.Has(q):
		return p.survives(process.CrashWaiter)
	}
	return p.survives(process.CrashBystander)
}

func (s *schedule) isSpecial(w *sim.World, q process.ID) bool {
	if s.plan.Special != nil {
		return s.plan.Special(w, q)
	}
	return q == s.token
}

// follow is a judge without an opinion that looks where the token goes, and who
// withdraws.
func (s *schedule) follow(w *sim.World) sim.Watcher {
	s.token = w.Config().Topology.Coordinator
	s.withdrawn = process.NewSet(w.Config().N)
	return sim.Watcher{Name: "token", Messages: true, Watch: func(o *sim.Observation) string {
		switch o.Kind {
		case sim.Withdrawn:
			s.withdrawn.Add(o.Process)
		case sim.Left:
			s.withdrawn.Remove(o.Process)
		case sim.Sent:
			switch w.Spec().Message(o.Message.Layer, o.Message.Type).Name {
			case "TOKEN", "PRIVILEGE":
				s.token = o.Peer
			}
		}
		return ""
	}}
}

func (s *schedule) drawPauses(r *rand.Rand) {
	for range r.IntN(3) {
		s.cfg.Faults = append(s.cfg.Faults, sim.Fault{
			Kind: sim.Pause, Process: process.ID(r.IntN(s.cfg.Process.N)),
			At: process.Duration(r.Int64N(100 * int64(d))), For: process.Duration(1 + r.Int64N(50*int64(d))),
		})
	}
}

// run steps through the schedule, with the crashes on the way.
func (s *schedule) run(sink sim.Sink) (*sim.Result, error) {
	cfg := s.cfg
	cfg.Trace = sink
	cfg.Judges = append(cfg.Judges[:len(cfg.Judges):len(cfg.Judges)], s.follow)
	w, err := sim.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("SEED=%d: %w", s.seed, err)
	}
	for w.Step() {
		for _, c := range s.crashes {
			if c.after != w.Events() {
				continue
			}
			if err := s.crash(w, c); err != nil {
				return nil, err
			}
		}
	}
	return w.Result(), nil
}

func (s *schedule) crash(w *sim.World, c crash) error {
	for i := range s.cfg.Process.N {
		q := process.ID((c.rank + i) % s.cfg.Process.N)
		if !s.mayCrash(w, q) {
			continue
		}
		f := sim.Fault{Kind: sim.Crash, Process: q, For: c.down}
		if c.inStep {
			f.Kind, f.Effects = sim.CrashInStep, c.effects
		}
		return w.Fault(f)
	}
	return nil
}

// tail is a sink that keeps the last records.
type tail struct{ records []trace.Record }

const tailSize = 40

func (t *tail) Write(r *trace.Record) error {
	if len(t.records) == 2*tailSize {
		t.records = append(t.records[:0], t.records[tailSize:]...)
	}
	t.records = append(t.records, *r)
	return nil
}

// story runs the schedule again and tells how it ended.
func (s *schedule) story() string {
	var last tail
	if _, err := s.run(&last); err != nil {
		return err.Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "links %+v, section %v, regime %s, options %v\n",
		s.cfg.Links.Link, s.cfg.Workload.Section, s.cfg.Workload.Regime, s.cfg.Process.Options)
	for i := max(0, len(last.records)-tailSize); i < len(last.records); i++ {
		b.WriteString(last.records[i].String() + "\n")
	}
	return b.String()
}

package simtest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/test/longrun"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/lab/trace/journal"
	"github.com/conclave-io/conclave/process"
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
	// Process is the common configuration of all schedules. If it sets options, only
	// these are used. Delays are drawn.
	Process process.Config
	// Special reports whether a process has a role that the algorithm may not survive
	// losing. Nil: the process that holds the token. That is the last receiver of a
	// message TOKEN, PRIVILEGE or PRIV, at first the coordinator of the topology. Without
	// such messages, it is the coordinator, if the algorithm needs one.
	Special func(w *sim.World, p process.ID) bool
	// MayCrash reports whether a process may crash now under the condition of the claim
	// (Survival.When). Nil: always.
	MayCrash func(w *sim.World, p process.ID) bool
	// Judges watch the run in addition to those of the claims.
	Judges []sim.Judge
	// Adjust changes the schedule of a seed before it runs, and may add judges.
	// It may be nil.
	Adjust func(cfg *sim.Config, seed uint64)
	// Impure means that the machines share memory, so that a journal of their inputs does
	// not determine what they did.
	Impure bool
}

// Run runs all schedules.
func (p Plan) Run(t *testing.T) {
	t.Helper()
	from, to := seeds(t)
	if !p.Impure {
		if err := p.schedule(from).described(); err != nil {
			t.Fatal(err)
		}
	}
	outcomes, happened := 0, tally{}
	sum := sums{began: time.Now()}
	for seed := from; seed < to; seed++ {
		s := p.schedule(seed)
		s.tally = happened
		result, err := s.run(nil)
		if err != nil {
			t.Fatal(err)
		}
		outcomes += result.Entries + len(result.Leaders)
		sum.add(result)
		if len(result.Violations) > 0 {
			t.Fatalf("SEED=%d: %s\n%s", seed, result.Violations[0], s.story())
		}
	}
	if p.Process.N >= 3 && to-from >= enough {
		for _, text := range happened.missing(p.Spec, p.modes()) {
			t.Error(text)
		}
	}
	if f := p.Spec.Top().Family; outcomes == 0 && (f.Locks() || f == process.Election) {
		t.Errorf("nobody entered and nobody was elected in %d schedules", to-from)
	}
	if err := sum.note(&p, int(to-from), happened); err != nil {
		t.Error(err)
	}
}

// enough schedules for each fault to happen in one of them.
const enough = 200

// modes returns the modes that the schedules go through.
func (p *Plan) modes() []string {
	if p.Process.Options != nil {
		return []string{p.Spec.Mode(&p.Process)}
	}
	return p.Spec.Modes()
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
			t.Fatalf("%s: %q: must be a number", name, text)
		}
		return n
	}
	if os.Getenv("SEED") != "" {
		from = number("SEED", 0)
		return from, from + 1
	}
	return 0, number("SEEDS", enough)
}

// schedule is one random run.
type schedule struct {
	plan    *Plan
	seed    uint64
	cfg     sim.Config
	mode    string
	crashes []crash
	due     []crash // in a run: those still to come
	seen    *witness
	tally   tally
}

func (p *Plan) schedule(seed uint64) *schedule {
	r := rand.New(rand.NewPCG(seed, uint64(p.Process.N)))
	s := &schedule{plan: p, seed: seed}
	s.cfg = sim.Config{Spec: p.Spec, Process: p.Process, Seed: seed}
	if p.Process.Options == nil {
		combinations := p.Spec.Combinations()
		s.cfg.Process.Options = combinations[seed%uint64(len(combinations))]
	}
	s.mode = p.Spec.Mode(&s.cfg.Process)
	s.drawLinks(r)
	s.drawLoad(r)
	s.drawCrashes(r)
	slices.SortFunc(s.crashes, func(a, b crash) int { return cmp.Compare(a.after, b.after) })
	if s.survives(process.Slowness) || p.Spec.Needs.Detector == process.NoDetector && !p.Spec.Needs.Synchrony {
		s.drawPauses(r)
	}
	if p.Adjust != nil {
		p.Adjust(&s.cfg, seed)
	}
	s.cfg.Judges = slices.Concat(s.cfg.Judges, sim.Claimed(p.Spec, &s.cfg.Process), p.Judges)
	return s
}

// run steps through the schedule, with the crashes on the way.
func (s *schedule) run(sink sim.Sink) (*sim.Result, error) {
	cfg := s.cfg
	cfg.Trace = sink
	cfg.Judges = append(cfg.Judges[:len(cfg.Judges):len(cfg.Judges)], s.watch)
	w, err := sim.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("SEED=%d: %w", s.seed, err)
	}
	s.due = s.crashes
	for w.Step() {
		if err := s.crashDue(w); err != nil {
			return nil, err
		}
	}
	return w.Result(), nil
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

// head is a sink that keeps the first records, and ends the run after them.
type head struct{ records []trace.Record }

const headSize = 1000

var errEnough = errors.New("enough records")

func (h *head) Write(r *trace.Record) error {
	if len(h.records) == headSize {
		return errEnough
	}
	h.records = append(h.records, *r)
	return nil
}

// described runs the beginning of the schedule. It returns an error if the journal
// describes a record differently from the trace.
func (s *schedule) described() error {
	kept, full := *s, head{}
	kept.tally = tally{}
	kept.cfg.Journal = &journal.Journal{}
	if _, err := kept.run(&full); err != nil {
		return err
	}
	records := min(kept.cfg.Journal.Len(), headSize)
	if records != len(full.records) {
		return fmt.Errorf("SEED=%d: the journal has %d records, the trace %d", s.seed, records, len(full.records))
	}
	described := kept.cfg.Journal.Describe(1, records)
	for i := range described {
		if !reflect.DeepEqual(described[i], full.records[i]) {
			return fmt.Errorf("SEED=%d: the journal describes\n%v\nand the trace\n%v", s.seed, &described[i], &full.records[i])
		}
	}
	return nil
}

// sums has the totals of the schedules of a plan, for the report of a long run.
type sums struct {
	events  uint64
	entries int
	began   time.Time
}

func (s *sums) add(r *sim.Result) {
	s.events += r.Events
	s.entries += r.Entries
}

func (s *sums) note(p *Plan, schedules int, happened tally) error {
	crashes := 0
	for _, mode := range p.modes() {
		crashes += happened[tallied{mode, process.CrashAny}]
	}
	figures := []longrun.Figure{
		{Name: "schedules", Value: float64(schedules)}, {Name: "events", Value: float64(s.events)},
		{Name: "entries", Value: float64(s.entries)}, {Name: "crashes", Value: float64(crashes)},
		{Name: "seconds", Value: time.Since(s.began).Seconds()},
	}
	return longrun.Note(fmt.Sprintf("%s, N = %d", p.Spec.Name, p.Process.N), figures...)
}

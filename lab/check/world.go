package check

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/conclave-io/conclave/process"
)

// World is a search of a Spec whose one machine is a whole world: servers, clients,
// clocks and what is on its way between them. Its machine takes one step after another
// forever, each time its only timer runs out, and Choose says which.
//
// Run can search such a Spec too. It keeps every local state, since processes come
// back to them. A world is in a new one each time, so World keeps nothing of a state
// but its fingerprint.
type World struct {
	Spec *process.Spec
	// Process configures the machine. N is 1.
	Process process.Config
	// Workers is how many goroutines search. Zero: one for each processor.
	Workers int
	// Memory is how many bytes the search may take, roughly. Zero: DefaultMemory.
	Memory int64
	// MaxStates and MaxDepth end a search. Zero: no such bound.
	MaxStates uint64
	MaxDepth  int
}

// WorldResult is the result of a search of a world.
type WorldResult struct {
	Verdict Verdict
	// Broken is the assertion that failed, or empty, and Steps a shortest run to it.
	Broken string
	Steps  []WorldStep

	States      uint64
	Transitions uint64
	Depth       int
	Elapsed     time.Duration
	Stopped     string // what ended a search that is Bounded; see Result
	Memory      int64  // bytes that the search took at most, roughly
	// Unreached are the rules that no step applied.
	Unreached []string
}

// WorldStep is a step of a run: the rules that it applied, and the fields that it
// changed.
type WorldStep struct {
	Rules   []string
	Changes []process.Change
}

// String returns the step in one line.
func (s WorldStep) String() string {
	text := strings.Join(s.Rules, ", ")
	for i, c := range s.Changes {
		text += fmt.Sprintf("%s%s %v -> %v", [...]string{": ", "; "}[min(i, 1)], c.Name, c.Before, c.After)
	}
	return text
}

// worldStep is the event of each step: the only timer runs out.
var worldStep = process.Event{Kind: process.Fire, Timer: 1}

// Run searches the world breadth first. The error is one of the configuration.
func (w World) Run(ctx context.Context) (*WorldResult, error) {
	start := time.Now()
	w.Memory = cmp.Or(w.Memory, DefaultMemory)
	w.Workers = cmp.Or(w.Workers, runtime.GOMAXPROCS(0))
	switch {
	case w.Process.N != 1:
		return nil, fmt.Errorf("check: world %s: N: %d: must be 1", w.Spec.Name, w.Process.N)
	case w.Spec.Depth() != 1:
		return nil, fmt.Errorf("check: world %s: %d layers: must be 1", w.Spec.Name, w.Spec.Depth())
	}
	if err := w.Spec.Validate(&w.Process); err != nil {
		return nil, err
	}
	s := newWorldSearch(ctx, &w)
	s.run()
	if s.broken.Load() != nil && w.Workers > 1 {
		// Which of several shortest runs is found first depends on the workers.
		w.Workers = 1
		if same := newWorldSearch(ctx, &w); same.run().broken.Load() != nil {
			s = same
		}
	}
	r := s.result()
	r.Elapsed = time.Since(start)
	return r, nil
}

// worldSearch is a search of a world in progress.
type worldSearch struct {
	*World
	ending
	visited *visited
	workers []*worldWorker
	depth   int
	lowest  int64 // the memory that was left when least was
	broken  atomic.Pointer[worldFinding]
}

// worldFinding is a state from which a step breaks an assertion.
type worldFinding struct {
	state  print
	broken string
}

func newWorldSearch(ctx context.Context, w *World) *worldSearch {
	s := &worldSearch{World: w, ending: ending{ctx: ctx, most: w.MaxStates}, visited: newVisited(w.Memory, false), lowest: w.Memory}
	for range w.Workers {
		s.workers = append(s.workers, newWorldWorker(s))
	}
	return s
}

func (s *worldSearch) over() bool { return s.stopped.Load() != nil || s.broken.Load() != nil }

// run searches depth by depth, as search.breadthFirst does.
func (s *worldSearch) run() *worldSearch {
	first := s.workers[0]
	first.begin()
	s.visited.add(printOf(first.state).nonzero(), 0)
	first.put()
	for level := s.collect(); len(level) > 0 && !s.over(); level = s.collect() {
		if s.MaxDepth > 0 && s.depth >= s.MaxDepth {
			s.stop("depth")
			break
		}
		s.depth++
		var next atomic.Int64
		var group sync.WaitGroup
		for _, w := range s.workers {
			group.Go(func() {
				for i := next.Add(1) - 1; int(i) < len(level) && !s.over(); i = next.Add(1) - 1 {
					w.expandChunk(level[i])
					s.visited.budget.Add(int64(cap(level[i])))
					level[i] = nil
					s.checkLimits()
				}
			})
		}
		group.Wait()
	}
	return s
}

// collect takes what the workers found at a depth.
func (s *worldSearch) collect() (chunks [][]byte) {
	for _, w := range s.workers {
		chunks = append(chunks, w.chunks...)
		w.chunks = nil
	}
	s.lowest = min(s.lowest, s.visited.budget.Load())
	return chunks
}

// worldWorker takes steps of a world.
type worldWorker struct {
	*worldSearch
	machine  process.Machine
	walk     process.Fields
	fx       process.Effects
	odometer process.Odometer
	event    process.Event
	rules    []bool // applied so far

	state       []byte // after the last step
	wrong       string // why it broke, or empty
	chunks      [][]byte
	transitions uint64
}

func newWorldWorker(s *worldSearch) *worldWorker {
	return &worldWorker{worldSearch: s, machine: s.Spec.New(0, &s.Process), rules: make([]bool, len(s.Spec.Rules)+1)}
}

// begin starts the machine.
func (w *worldWorker) begin() {
	w.machine = w.Spec.New(0, &w.Process)
	w.step(process.Event{Kind: process.Start, Incarnation: 1})
}

func (w *worldWorker) step(ev process.Event) {
	w.event, w.wrong = ev, ""
	w.fx.Begin(0, w.odometer.Choose)
	if failed, is := process.Try(w.machine, &w.event, &w.fx).(process.Violation); is {
		w.wrong = string(failed)
	}
	for i := range w.fx.Len() {
		if e := w.fx.At(i); e.Kind == process.EffectRule {
			w.rules[e.Rule] = true
		}
	}
	w.state = w.walk.Append(w.state[:0], w.machine)
}

// ways calls f after each step that a state allows, until f returns false.
func (w *worldWorker) ways(state []byte, f func() bool) {
	w.odometer = process.Odometer{}
	for again := true; again; again = w.odometer.Next() {
		err := w.walk.Decode(state, w.machine, 1)
		process.Assert(err == nil, "an encoded state can be decoded")
		w.step(worldStep)
		if !f() {
			return
		}
	}
}

// worldChunk is how many bytes of states workers take at a time.
const worldChunk = 1 << 16

// put keeps a state that is new, with its length before it, for the next depth.
func (w *worldWorker) put() {
	last := len(w.chunks) - 1
	if last < 0 || len(w.chunks[last])+len(w.state)+binary.MaxVarintLen32 > cap(w.chunks[last]) {
		size := max(worldChunk, len(w.state)+binary.MaxVarintLen32)
		if w.visited.budget.Add(-int64(size)) < 0 {
			w.stop("memory")
		}
		w.chunks = append(w.chunks, make([]byte, 0, size))
		last++
	}
	w.chunks[last] = append(binary.AppendUvarint(w.chunks[last], uint64(len(w.state))), w.state...)
	w.states.Add(1)
}

func (w *worldWorker) expandChunk(chunk []byte) {
	for len(chunk) > 0 {
		length, size := binary.Uvarint(chunk)
		state := chunk[size : size+int(length)]
		chunk = chunk[size+int(length):]
		before := printOf(state).nonzero()
		w.ways(state, func() bool {
			w.transitions++
			if w.wrong != "" {
				w.broken.CompareAndSwap(nil, &worldFinding{before, w.wrong})
				return false
			}
			isNew, fits := w.visited.add(printOf(w.state).nonzero(), before.lo)
			if !fits {
				w.stop("memory")
			}
			if isNew {
				w.put()
			}
			return true
		})
		if w.over() {
			return
		}
	}
}

func (s *worldSearch) result() *WorldResult {
	r := &WorldResult{Verdict: Proved, States: s.visited.len(), Depth: max(0, s.depth-1), Memory: s.Memory - s.lowest}
	applied := make([]bool, len(s.Spec.Rules)+1)
	for _, w := range s.workers {
		r.Transitions += w.transitions
		for i := range applied {
			applied[i] = applied[i] || w.rules[i]
		}
	}
	for i, rule := range s.Spec.Rules {
		if !applied[i+1] {
			r.Unreached = append(r.Unreached, rule.Name)
		}
	}
	if r.Stopped = s.why(); r.Stopped != "" {
		r.Verdict = Bounded
	}
	if f := s.broken.Load(); f != nil {
		r.Verdict, r.Stopped, r.Broken = Violated, "", f.broken
		r.Steps = s.path(f)
		r.Depth = len(r.Steps)
	}
	return r
}

// path takes the steps to a finding again, from the start.
func (s *worldSearch) path(f *worldFinding) (steps []WorldStep) {
	w := newWorldWorker(s)
	w.begin()
	state := slices.Clone(w.state)
	for _, lo := range s.visited.chain(f.state)[1:] {
		steps = append(steps, w.retake(state, func() bool { return w.wrong == "" && printOf(w.state).nonzero().lo == lo }))
		state = slices.Clone(w.state)
	}
	return append(steps, w.retake(state, func() bool { return w.wrong != "" }))
}

// retake takes the step that is looked for and describes it.
func (w *worldWorker) retake(state []byte, wanted func() bool) WorldStep {
	found := false
	w.ways(state, func() bool {
		found = wanted()
		return !found
	})
	process.Assert(found, "a step that was taken can be taken again")
	var step WorldStep
	for i := range w.fx.Len() {
		if e := w.fx.At(i); e.Kind == process.EffectRule {
			step.Rules = append(step.Rules, w.Spec.RuleText(0, e.Rule))
		}
	}
	earlier := w.Spec.New(0, &w.Process)
	err := process.DecodeState(state, earlier, 1)
	process.Assert(err == nil, "an encoded state can be decoded")
	step.Changes = process.Diff(process.View(earlier, &w.Process), process.View(w.machine, &w.Process))
	return step
}

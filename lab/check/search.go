package check

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/conclave-io/conclave/process"
)

// Run performs the search that the configuration describes. An error means that the
// configuration is wrong; a search that ctx ends is Bounded.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	start := time.Now()
	full := cfg.withDefaults()
	s := searched(ctx, &full)
	if s.broken != nil && full.Order == BreadthFirst && len(s.workers) > 1 {
		// With several workers it varies which of several shortest runs is
		// found first; with one worker it is always the same.
		again := full
		again.Workers = 1
		if same := searched(ctx, &again); same.broken != nil { // otherwise time ran out
			s = same
		}
	}
	if why := s.why(); full.Liveness && s.broken == nil && (why == "" || why == "states" && full.family() == process.Agreement) {
		s.live()
	}
	r := s.result()
	r.Elapsed = time.Since(start)
	return r, nil
}

// searched makes a search.
func searched(ctx context.Context, cfg *Config) *search {
	if cfg.Reduce == PartialOrder {
		return reduced(ctx, cfg)
	}
	s := newSearch(ctx, cfg)
	s.run()
	return s
}

func (s *search) run() {
	if s.cfg.Order == DepthFirst {
		s.depthFirst()
	} else {
		s.breadthFirst()
	}
}

// recordExtra is the part of a frontier record in addition to the slots of its state:
// its fingerprint.
const recordExtra = 4

// ending is what ends a search before it is complete.
type ending struct {
	ctx     context.Context
	most    uint64        // states; 0: any number
	states  atomic.Uint64 // found so far, roughly
	stopped atomic.Pointer[string]
	room    func(bytes int64) bool // of the process; nil: any
}

// stop ends the search. The first reason counts.
func (e *ending) stop(why string) { e.stopped.CompareAndSwap(nil, &why) }

// why returns what ended the search, or nothing.
func (e *ending) why() string {
	if why := e.stopped.Load(); why != nil {
		return *why
	}
	return ""
}

func (e *ending) checkLimits() {
	switch {
	case errors.Is(e.ctx.Err(), context.Canceled):
		e.stop("interruption")
	case e.ctx.Err() != nil:
		e.stop("time")
	case e.most > 0 && e.states.Load() >= e.most:
		e.stop("states")
	case e.room != nil && !e.room(0):
		e.stop("memory")
	}
}

// search is a search in progress.
type search struct {
	ending
	cfg     *Config
	space   *space
	visited *visited
	workers []*worker
	width   int // words of a record

	transitions atomic.Uint64
	depth       int

	start   time.Time
	told    time.Time // when progress was last reported
	telling sync.Mutex

	mu     sync.Mutex
	broken *finding
	loop   *lasso // an infinite run
	free   [][]uint32
}

// finding is where a violation was found: in a state, or in the step out of it.
type finding struct {
	broken *Violation
	state  print
	action action // kind 0: the state itself is wrong
}

func newSearch(ctx context.Context, cfg *Config) *search {
	s := &search{ending: ending{ctx: ctx, most: cfg.MaxStates}, cfg: cfg, start: time.Now(), space: newSpace(cfg), visited: newVisited(cfg.Memory, cfg.Reduce == PartialOrder && cfg.Order == BreadthFirst)}
	s.visited.room, s.room = cfg.Room, cfg.Room
	s.width = s.space.layout.stride + recordExtra
	workers := cfg.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	if cfg.Order == DepthFirst {
		workers = 1
	}
	for range workers {
		w := newWorker(s.space)
		w.visited, w.stop = s.visited, s.stop
		s.workers = append(s.workers, w)
	}
	return s
}

// chunkRecords is the number of states in a chunk of the frontier.
const chunkRecords = 1 << 12

// frontier holds the states of one depth, in chunks.
type frontier struct {
	chunks [][]uint32
	taken  atomic.Int64
}

// breadthFirst searches depth by depth. All workers take chunks of states of the
// present depth, and each puts new states into its own chunks for the next.
func (s *search) breadthFirst() {
	next := s.roots()
	for len(next) > 0 && s.broken == nil && s.stopped.Load() == nil {
		if s.cfg.MaxDepth > 0 && s.depth >= s.cfg.MaxDepth {
			s.stop("depth")
			return
		}
		level := &frontier{chunks: next}
		s.visited.depth = uint32(s.depth) + 1
		found := make([][][]uint32, len(s.workers))
		var group sync.WaitGroup
		for i, w := range s.workers {
			group.Go(func() { found[i] = s.level(w, level) })
		}
		group.Wait()
		next = nil
		for _, chunks := range found {
			next = append(next, chunks...)
		}
		if len(next) > 0 {
			s.depth++
		}
	}
}

// roots returns the initial states, one for each way in which the machines may start.
func (s *search) roots() [][]uint32 {
	out := &output{search: s}
	w := s.workers[0]
	for _, v := range w.roots() {
		f := w.printOfState(v)
		if isNew, _ := s.visited.add(f, 0); isNew {
			s.reach(w, v, f, out)
		}
	}
	return out.chunks
}

// level expands chunks of a depth until none is left.
func (s *search) level(w *worker, level *frontier) [][]uint32 {
	out := &output{search: s}
	for s.stopped.Load() == nil {
		i := int(level.taken.Add(1)) - 1
		if i >= len(level.chunks) {
			break
		}
		chunk, size, transitions := level.chunks[i], out.size, uint64(0)
		for at := 0; at < len(chunk); at += batch * s.width {
			transitions += s.visit(w, chunk[at:min(at+batch*s.width, len(chunk))], out)
		}
		s.states.Add(uint64(out.size - size))
		s.transitions.Add(transitions)
		level.chunks[i] = nil
		s.recycle(chunk)
		s.tell()
		s.checkLimits()
	}
	return out.chunks
}

func (s *search) record(words []uint32) ([]uint32, print) {
	n := s.width - recordExtra
	e := words[n:s.width]
	return words[:n], print{uint64(e[0]) | uint64(e[1])<<32, uint64(e[2]) | uint64(e[3])<<32}
}

// batch is the number of states whose successors are looked up together among the
// visited states: the processor loads their memory locations in parallel.
const batch = 16

// visit expands at most a batch of states and puts out the new states among their
// successors. It returns the number of successors.
func (s *search) visit(w *worker, records []uint32, out *output) uint64 {
	w.forget(0)
	var ends [batch]int // of the successors of each
	for k := range len(records) / s.width {
		v, f := s.record(records[k*s.width:])
		if broken := w.expandMore(v, f); broken != nil {
			s.report(finding{broken, f, action{}})
		}
		ends[k] = len(w.found)
	}
	sum := uint64(0)
	for i := range w.found {
		sum += s.visited.touch(w.found[i].print)
	}
	w.touched += sum
	i := 0
	for k := range len(records) / s.width {
		_, f := s.record(records[k*s.width:])
		for ; i < ends[k]; i++ {
			s.follow(w, &w.found[i], f, w.successor(i), out)
		}
	}
	return uint64(len(w.found))
}

// follow puts out a successor of a state if it is new.
func (s *search) follow(w *worker, next *successor, before print, v []uint32, out *output) {
	if next.broken != nil {
		s.report(finding{next.broken, before, next.action})
		return
	}
	isNew, fits := s.visited.add(next.print, before.lo)
	if !fits {
		s.stop("memory")
	}
	if isNew {
		s.reach(w, v, next.print, out)
	}
}

// reach puts out a new state, unless it violates the invariant.
func (s *search) reach(w *worker, v []uint32, f print, out *output) {
	if w.cfg.checks(process.StateInvariant) {
		if broken := w.global.judge(w, v); broken != nil {
			s.report(finding{broken, f, action{}})
			return
		}
	}
	out.put(v, f)
}

// report keeps the first violation. With one worker that is always the same.
func (s *search) report(f finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		s.broken = &f
	}
}

// output collects the states of the next depth.
type output struct {
	*search
	chunks [][]uint32
	size   int     // states
	depths []int32 // of each, for a stack
}

func (o *output) put(v []uint32, f print) {
	o.size++
	last := len(o.chunks) - 1
	if last < 0 || len(o.chunks[last]) == cap(o.chunks[last]) {
		o.chunks = append(o.chunks, o.fresh())
		last++
	}
	c := append(o.chunks[last], v[:o.width-recordExtra]...)
	o.chunks[last] = append(c, uint32(f.lo), uint32(f.lo>>32), uint32(f.hi), uint32(f.hi>>32))
}

// fresh returns an empty chunk.
func (s *search) fresh() []uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.free) - 1; last >= 0 {
		c := s.free[last]
		s.free = s.free[:last]
		return c[:0]
	}
	words := chunkRecords * s.width
	if s.visited.budget.Add(-4*int64(words)) < 0 || s.room != nil && !s.room(4*int64(words)) {
		s.stop("memory")
	}
	return make([]uint32, 0, words)
}

func (s *search) recycle(chunk []uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, chunk)
}

func (s *search) result() *Result {
	r := &Result{
		Config: *s.cfg, Verdict: Proved, States: s.visited.len(), Transitions: s.transitions.Load(), Depth: s.depth,
		Unreached: s.space.unreached(), Sometimes: s.sometimes(), Locals: len(s.space.locals) - 1, Messages: len(s.space.messages) - 1,
	}
	if r.Stopped = s.why(); r.Stopped != "" {
		r.Verdict = Bounded
	}
	if s.broken != nil {
		r.Verdict, r.Broken, r.Stopped = Violated, s.broken.broken, ""
		if s.loop != nil {
			r.Path = s.loop.path()
		} else {
			r.Path = s.path(s.broken)
		}
		r.Depth = len(r.Path.Steps)
		r.NoReturn = s.noReturn(r.Path, s.broken, s.cfg.NoReturn)
	}
	return r
}

// Progress is how far a search has come.
type Progress struct {
	States      uint64 // found so far, roughly
	Transitions uint64
	Depth       int
	Elapsed     time.Duration
}

// progressEvery is the time between two calls of Config.Progress.
const progressEvery = 100 * time.Millisecond

// tell calls Config.Progress, if the last call is long enough ago. One of several
// workers does so; the others continue.
func (s *search) tell() {
	if s.cfg.Progress == nil || !s.telling.TryLock() {
		return
	}
	defer s.telling.Unlock()
	if now := time.Now(); now.Sub(s.told) >= progressEvery {
		s.told = now
		s.cfg.Progress(Progress{s.states.Load(), s.transitions.Load(), s.depth, now.Sub(s.start)})
	}
}

// depthFirst searches the states that were found last first. It keeps fewer states
// waiting than breadthFirst, but the violations that it finds are rarely shortest.
func (s *search) depthFirst() {
	w := s.workers[0]
	stack := &output{search: s}
	for _, chunk := range s.roots() {
		for at := 0; at < len(chunk); at += s.width {
			v, f := s.record(chunk[at:])
			stack.put(v, f)
			stack.depths = append(stack.depths, 0)
		}
	}
	state := make([]uint32, s.width)
	for len(stack.depths) > 0 && s.broken == nil && s.stopped.Load() == nil {
		depth := stack.pop(state)
		s.depth = max(s.depth, depth)
		if s.cfg.MaxDepth > 0 && depth >= s.cfg.MaxDepth {
			s.stop("depth")
			return
		}
		before := stack.size
		s.transitions.Add(s.visit(w, state, stack))
		s.states.Add(uint64(stack.size - before))
		for range stack.size - before {
			stack.depths = append(stack.depths, int32(depth+1))
		}
		s.tell()
		s.checkLimits()
	}
}

// pop removes the last state and returns its depth.
func (o *output) pop(into []uint32) int {
	last := len(o.chunks) - 1
	c := o.chunks[last]
	copy(into, c[len(c)-o.width:])
	o.chunks[last] = c[:len(c)-o.width]
	if len(o.chunks[last]) == 0 {
		o.recycle(o.chunks[last])
		o.chunks = o.chunks[:last]
	}
	o.size--
	depth := o.depths[len(o.depths)-1]
	o.depths = o.depths[:len(o.depths)-1]
	return int(depth)
}

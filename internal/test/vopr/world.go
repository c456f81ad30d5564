package vopr

import (
	"github.com/conclave-io/conclave/internal/test/vopr/faults"
	"github.com/conclave-io/conclave/internal/test/vopr/stats"

	crand "crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"

	"github.com/conclave-io/conclave/internal/service/registry"
)

// ms is a millisecond, in ns.
const ms = int64(1e6)

// world is the state of one run.
type world struct {
	plan   faults.Plan
	checks Checks
	log    io.Writer // nil: no log
	now    int64     // ns, from the start
	end    int64     // when clients stop starting new work

	events events
	drawn  uint64 // number of scheduled events so far
	digest uint64 // digest of all events

	net, disks, work, releases, nests *rand.Rand // independent random sources

	servers     []*server // by id, from 1
	founders    []uint64
	directories uint64  // number of directories created so far
	doubtful    bool    // a removal of a server may have succeeded without a confirmation
	settled     members // those of which a leader said last that they are settled, in the term settledIn
	settledIn   uint64
	clients     []*client
	owners      map[registry.SessionID]string // principals of all sessions that clients opened, also of those given up
	cuts        []*cut
	storm       *faults.Fault
	uneasy      int64  // when there was last a fault of the servers, or a change of the members
	numbers     uint64 // the number of the latest connection or stream
	healed      bool
	operator
	attendant
	judge judge
	trace *trace   // nil if traces are not checked
	live  *seating // nil if the plan has no live names
	hosts *hosting // nil if the plan has no hosts
	// guards is the common part of live and hosts, or nil.
	guards *guarding
	rules  *ruling // nil if the plan has no rules
	stats  stats.Stats
	found  *Violation
}

// Violation is a broken promise.
type Violation struct {
	// Rule is the short name of the promise. Text describes what happened.
	Rule, Text string
	At         int64 // ns
}

func (v *Violation) Error() string {
	return fmt.Sprintf("%s: %s, at %d ms", v.Rule, v.Text, v.At/ms)
}

// Result is the result of a run.
type Result struct {
	Stats     stats.Stats
	Violation *Violation // nil if there was none
	// Digest is always the same for the same plan, and almost always different for different plans.
	Digest uint64
}

// Checks selects what a run is checked for.
type Checks uint8

// The possible checks: the promises of the service, and whether the decisions of servers and
// clients conform to the model of the sessions.
const (
	Promises Checks = 1 << iota
	Traces
)

// Run runs a plan with all checks.
func Run(plan faults.Plan, log io.Writer) Result { return Check(plan, log, Promises|Traces) }

// Check runs a plan to its end, or until a check fails. If log is not nil, it receives a
// description of the events. Only one run at a time is possible, because raft draws its election
// timeouts from crypto/rand, and Check replaces that during the run.
func Check(plan faults.Plan, log io.Writer, checks Checks) (result Result) {
	real := crand.Reader
	crand.Reader = chance{rand.New(rand.NewPCG(plan.Seed, 1))}
	defer func() { crand.Reader = real }()
	w := newWorld(plan, log, checks)
	defer func() {
		if broken := recover(); broken != nil {
			w.violate("assertion", "%v\n%s", broken, debug.Stack())
		}
		w.stats.Runs, w.stats.Nanos = 1, w.now
		if w.trace != nil {
			w.stats.Compared = w.trace.run.Compared
		}
		result = Result{Stats: w.stats, Violation: w.found, Digest: w.digest}
	}()
	w.play()
	return result
}

// chance is a deterministic source of random bytes.
type chance struct{ rng *rand.Rand }

func (c chance) Read(b []byte) (int, error) {
	var word [8]byte
	for i := range b {
		if i%8 == 0 {
			binary.LittleEndian.PutUint64(word[:], c.rng.Uint64())
		}
		b[i] = word[i%8]
	}
	return len(b), nil
}

func newWorld(plan faults.Plan, log io.Writer, checks Checks) *world {
	w := &world{
		plan: plan, checks: checks, log: log, end: plan.Millis * ms, judge: newJudge(),
		owners:   make(map[registry.SessionID]string),
		net:      rand.New(rand.NewPCG(plan.Seed, 2)),
		disks:    rand.New(rand.NewPCG(plan.Seed, 3)),
		work:     rand.New(rand.NewPCG(plan.Seed, 4)),
		releases: rand.New(rand.NewPCG(plan.Seed, 5)),
		nests:    rand.New(rand.NewPCG(plan.Seed, 6)),
	}
	if plan.Deadlocks {
		w.judge.tested = newPretested()
	}
	if checks&Traces != 0 && !plan.Live {
		w.trace = newTrace(w) // the model has no seats
	}
	if plan.Hosts {
		w.hosts = newHosting(w)
		w.guards = &w.hosts.guarding
	}
	w.foundCluster()
	for slot := range plan.Clients {
		w.clients = append(w.clients, newClient(w, slot))
	}
	for _, f := range plan.Faults {
		w.at(f.At*ms, func() { w.strike(f) })
	}
	w.at(tick, w.watchPatience)
	w.at(lookPeriod, w.attend)
	if plan.Levels {
		w.at(levelSoak, w.roll)
	}
	switch {
	case plan.Live && !plan.Hosts:
		w.live = newSeating(w)
		w.guards = &w.live.guarding
	case plan.Hosts:
		w.judge.live = newLiveResources()
	}
	if plan.Access {
		w.rules = newRuling(w)
	}
	w.at(w.end, w.heal)
	return w
}

// play processes events until the run is quiet after its end, or a check fails.
func (w *world) play() {
	for w.found == nil && w.step() {
		if w.now > w.end && w.judge.settled(w) {
			w.judge.conclude(w)
			return
		}
	}
}

func (w *world) step() bool {
	if len(w.events) == 0 {
		return false
	}
	e := w.events.pop()
	w.now = e.at
	w.stats.Events++
	e.do()
	return true
}

// at schedules an event at a time. Events at the same time happen in the order in which they were
// scheduled.
func (w *world) at(when int64, do func()) {
	w.drawn++
	w.events.push(event{max(when, w.now), w.drawn, do})
}

// homeRules returns the judge of the rules at homes, or nil.
func (w *world) homeRules() *homeRules {
	if w.rules == nil {
		return nil
	}
	return w.rules.homes
}

func (w *world) after(d int64, do func()) { w.at(w.now+d, do) }

// note adds an event to the digest and to the log.
func (w *world) note(what string, a, b uint64) {
	const prime = 0x100000001b3
	h := w.digest ^ uint64(w.now)
	for i := range len(what) {
		h = (h ^ uint64(what[i])) * prime
	}
	h = (h ^ a) * prime
	h ^= h >> 29
	w.digest = (h ^ b) * prime
	if w.log != nil {
		fmt.Fprintf(w.log, "%10.3f %s %d %d\n", float64(w.now)/1e6, what, a, b)
	}
}

// tell adds a line to the log.
func (w *world) tell(format string, args ...any) {
	if w.log != nil {
		fmt.Fprintf(w.log, "%10.3f "+format+"\n", append([]any{float64(w.now) / 1e6}, args...)...)
	}
}

// violate records the first check that fails.
func (w *world) violate(rule, format string, args ...any) {
	if w.found == nil && (rule == ruleTrace || w.checks&Promises != 0) {
		w.found = &Violation{Rule: rule, Text: fmt.Sprintf(format, args...), At: w.now}
		w.tell("VIOLATION %v", w.found)
	}
}

// event is a scheduled event.
type event struct {
	at  int64
	seq uint64
	do  func()
}

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

// events is a heap of scheduled events.
type events []event

func (q *events) push(e event) {
	*q = append(*q, e)
	h := *q
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
}

func (q *events) pop() event {
	h := *q
	top, last := h[0], h[len(h)-1]
	h[len(h)-1] = event{}
	h = h[:len(h)-1]
	*q = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].before(&h[child]) {
			child++
		}
		if !h[child].before(&last) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = last
	return top
}

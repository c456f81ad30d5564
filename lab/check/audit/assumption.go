package audit

import (
	"slices"
	"strings"

	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// Assumption is something that algorithms assume about their environment.
type Assumption uint8

// The assumptions. Nothing means that all are kept.
const (
	Nothing Assumption = iota
	FIFO
	NoLoss
	NoDuplication
	NoCrash
	BoundedDelay
	UniqueLabels
	CorrectDetector
)

// Assumptions are the columns of the audit. The first drops nothing: what breaks there
// breaks everywhere.
var Assumptions = []Assumption{
	Nothing, FIFO, NoLoss, NoDuplication, NoCrash, BoundedDelay, UniqueLabels, CorrectDetector,
}

// described says of each assumption its name, that in file names, what Specs call its
// absence (0: nothing), and what the checker does instead.
var described = [...]struct {
	name, slug string
	fault      process.Fault
	dropped    string
}{
	Nothing:         {"nothing dropped", "all-kept", 0, "Links keep their order and lose and duplicate nothing, no process crashes, and timers expire only while no message is in flight and no process is inside. If the algorithm needs synchrony, timers of elections and detectors also expire while a process is inside, but a detector never declares a live process failed."},
	FIFO:            {"FIFO links", "fifo", process.Reorder, "Every message may overtake every other on its link."},
	NoLoss:          {"no loss", "loss", process.Loss, "One message may be lost."},
	NoDuplication:   {"no duplication", "duplication", process.Duplication, "One message may come twice, the second time whenever it likes."},
	NoCrash:         {"no crash", "crash", process.CrashAny, "One process may crash for good, at any moment, also between two sends of a step. Where the algorithm wants a detector, it is told the truth at any later moment; in an election that wants none, who follows a leader that has crashed asks for another at some later moment."},
	BoundedDelay:    {"bounded delay", "delay", process.Slowness, "Timers may run out at any moment, also while messages are on their way and others are inside, and those of a detector also while what they wait for is up."},
	UniqueLabels:    {"unique labels", "labels", 0, "Two processes have the same label, any two in turn, and in elections by load everyone is equally busy. Processes are known by their rank, which cannot be the same twice; labels are what elections compare, and announcements are ordered by round and rank all the same."},
	CorrectDetector: {"correct detector", "detector", 0, "One process may be told, once, that another has failed that is up. From then on it hears nothing of it, as if that had crashed."},
}

// String returns the name of the assumption.
func (a Assumption) String() string { return described[a].name }

// Dropped describes in a sentence what the checker allows when the assumption is
// dropped.
func (a Assumption) Dropped() string { return described[a].dropped }

// Needed reports whether an algorithm states that it needs the assumption. For a crash
// that means that it does not survive every crash.
func (a Assumption) Needed(s *process.Spec) bool {
	switch a {
	case FIFO:
		return s.Needs.FIFO
	case NoLoss:
		return s.Needs.Reliable
	case NoDuplication:
		return s.Needs.NoDuplication
	case BoundedDelay:
		return s.Needs.Synchrony
	case NoCrash:
		return !s.Survives(process.CrashAny, s.Mode(&process.Config{}))
	case UniqueLabels:
		return s.Has(process.Election)
	case CorrectDetector:
		return s.Needs.Detector != process.NoDetector
	}
	return false
}

// Survived reports whether the Spec states that the algorithm keeps its promises
// without the assumption, and under which condition, if any.
func (a Assumption) Survived(s *process.Spec) (survives bool, when string) {
	fault, mode := described[a].fault, s.Mode(&process.Config{})
	if fault == 0 || !s.Survives(fault, mode) {
		return false, ""
	}
	for _, v := range s.Claims.Survives {
		if v.Fault == fault && (v.Mode == "" || v.Mode == mode) {
			return true, v.When
		}
	}
	return true, ""
}

// comparesLabels reports whether the algorithm, or the election that it asks for,
// compares labels. All others identify processes by their rank.
func comparesLabels(s *process.Spec) bool { return s.Needs.Elector || s.Has(process.Election) }

func hasTimers(s *process.Spec) bool {
	for _, l := range s.All() {
		if len(l.Timers) > 0 {
			return true
		}
	}
	return false
}

// properties are the judged properties: all claimed ones, except a bound of bypass that
// holds only while no takeover begins. Timers that wait for a lost token may begin a
// takeover at any quiet moment.
func properties(s *process.Spec, c *process.Config) []process.Property {
	return slices.DeleteFunc(check.Claimed(s, c), func(p process.Property) bool {
		return p == process.BoundedBypass && s.Needs.Elector
	})
}

// applies returns why the checker does not search, or 0 if it does.
func (a Assumption) applies(s *process.Spec) (Outcome, string) {
	switch {
	case !judged(s):
		return NotAudited, "what it promises holds once nobody has come or gone for some periods of its timers, and how long a period is the checker does not model; the simulator judges it"
	case a == BoundedDelay && !hasTimers(s):
		return NotApplicable, "it has no timers, so delays are as long as they like in every search"
	case a == UniqueLabels && !comparesLabels(s):
		return NotApplicable, "it cannot be dropped: processes are known by their rank, which breaks ties too, and no rule looks at a label"
	case a == CorrectDetector && s.Has(process.Detector):
		return NotApplicable, "its detector is a part of it, which is wrong when a delay is longer than its bound: that is dropped in another column"
	case a == CorrectDetector && s.Needs.Detector == process.NoDetector:
		return NotApplicable, "it asks no detector"
	}
	return 0, ""
}

// judged reports whether the checker can judge any property of the algorithm.
func judged(s *process.Spec) bool {
	return len(check.Claimed(s, &process.Config{N: ladder[0].n})) > 0
}

// step is one step of the ladder of bounds.
type step struct{ n, entries int }

var ladder = []step{{2, 1}, {3, 1}, {3, 2}, {4, 1}}

// timeouts is the number of timers that may expire if any number is too many. A crash
// that an algorithm has to notice by itself uses some of them before anything else
// happens: to doubt, to give up, and to elect.
const (
	timeouts            = 3
	timeoutsOfDetectors = 5
)

func fewTimeouts(s *process.Spec) int {
	if s.Has(process.Detector) {
		return timeoutsOfDetectors
	}
	return timeouts
}

// Limits bounds one search.
type Limits struct {
	States uint64 // different states, approximately
	Depth  int    // steps of a run
	Memory int64  // bytes
	// Room reports whether the process may allocate further bytes. Nil: always.
	Room func(bytes int64) bool
}

// The limits of docs/assumptions.md.
var Default = Limits{States: 200_000, Depth: 100, Memory: 1 << 30}

// configs are the searches without an assumption on a step of the ladder: one, or one
// for each pair of processes that might have the same label.
func (l Limits) configs(spec *process.Spec, a Assumption, s step) []check.Config {
	cfg := l.config(spec, a, s)
	if a != UniqueLabels {
		return []check.Config{cfg}
	}
	var all []check.Config
	for q := range process.ID(s.n) {
		for p := range q {
			labels := make([]process.Label, s.n)
			for r := range process.ID(s.n) {
				labels[r] = cfg.Process.Label(r)
			}
			labels[p] = labels[q]
			c := cfg
			c.Process.ElectionLabels = labels
			all = append(all, c)
		}
	}
	return all
}

// config is a search without labels. With one worker the counts are the same
// everywhere; Run uses the others.
func (l Limits) config(spec *process.Spec, a Assumption, s step) check.Config {
	cfg := check.Config{
		Spec: spec, Process: process.Config{N: s.n}, Entries: s.entries,
		Liveness: judgedLive(spec), Workers: 1, MaxStates: l.States, MaxDepth: l.Depth, Memory: l.Memory, Room: l.Room,
	}
	cfg.Properties = properties(spec, &cfg.Process)
	switch a {
	case FIFO:
		cfg.Unordered = true
	case NoLoss:
		cfg.Drops = 1
	case NoDuplication:
		cfg.Duplicates = 1
	case NoCrash:
		cfg.Crashes = 1
	case BoundedDelay:
		cfg.Timing = check.AnyTime
	case UniqueLabels:
		if spec.Needs.Load {
			cfg.Loads = make([]int64, s.n)
		}
	case CorrectDetector:
		cfg.Suspicions = 1
	}
	return cfg
}

// judgedLive reports whether infinite runs violate a property. A property that holds
// with probability 1 is violated by unlucky choices forever. Termination of decisions
// is judged only where it is claimed.
func judgedLive(s *process.Spec) bool {
	for _, c := range s.Claims.Properties {
		if c.Property == process.Decision && c.Fails {
			return false
		}
		if c.Property == process.Progress && strings.HasPrefix(c.When, "with probability 1") {
			return c.Mode != "" && c.Mode != s.Mode(&process.Config{})
		}
	}
	return true
}

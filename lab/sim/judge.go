package sim

import (
	"cmp"

	"github.com/conclave-io/conclave/algorithm/election/superpeer"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// ObservationKind is the kind of an Observation.
type ObservationKind uint8

// What judges see, with the fields of Observation that each kind sets in addition to
// Process.
const (
	Requested ObservationKind = iota + 1 // a client asks to enter
	Entered                              // Fence
	Left                                 // Fence
	Withdrawn                            // a client asks no more
	Denied                               // Value: position
	Revoked                              // Fence
	Crashed
	Restarted
	Elected   // Peer, Term
	Installed // Peer, Term: elected for another layer of the same stack
	Suspected // Peer
	Trusted   // Peer
	Failed    // Peer
	Rejoined  // Peer, Value: incarnation
	Decided   // Value
	Delivered // to the application: Message
	Sent      // Peer, Message
	Received  // Peer, Message
	Proposed  // Value: a client offers or multicasts it
)

var announced = [...]ObservationKind{
	process.EffectSuspect: Suspected, process.EffectTrust: Trusted,
	process.EffectFail: Failed, process.EffectRejoin: Rejoined,
}

// Observation is an event that judges see. It and its message are lent.
type Observation struct {
	Kind    ObservationKind
	Process process.ID
	Peer    process.ID
	Fence   process.Fence
	Term    process.Term
	Value   int64
	Message *process.Message
}

// Judge makes the watcher of one run.
type Judge func(w *World) Watcher

// Watcher watches a run for one property. It sees only what clients, links and
// operators could see, never the inside of machines. All its functions may be nil.
type Watcher struct {
	Name     string // "": that of the property
	Property process.Property
	Kind     ObservationKind // 0: all but Sent and Received
	Messages bool            // with Kind 0: wants Sent and Received too
	Ghost    bool            // wants to know causality

	// Watch says in one line what is wrong, or returns "".
	Watch func(o *Observation) string
	// State is called after each event, once every process has started.
	State func() string
	// Quiet is called once, when the run is over because no event is left.
	Quiet func() string
	// End is called once, when the run is over.
	End func() string
}

func (w *World) initJudges() {
	judges := w.cfg.Judges
	if judges == nil {
		judges = Claimed(w.cfg.Spec, w.config)
	}
	w.oracle.init(&w.cfg)
	for _, judge := range judges {
		watcher := judge(w)
		watcher.Name = cmp.Or(watcher.Name, watcher.Property.String())
		w.curious = w.curious || watcher.Messages
		w.global = w.global || watcher.State != nil
		if watcher.Ghost && w.ghost == nil {
			w.ghost = newGhost(w.config.N)
		}
		w.watchers = append(w.watchers, watcher)
	}
	w.links.arrived = func(at int64) bool { return at <= int64(w.now) }
}

// observe shows an observation to all judges.
func (w *World) observe(o Observation) {
	for i := range w.watchers {
		watcher := &w.watchers[i]
		if !watcher.wants(o.Kind) {
			continue
		}
		w.observed, w.blamed = o, o.Process // lent from here, to avoid an allocation
		if text := watcher.Watch(&w.observed); text != "" {
			w.accuse(watcher, text)
		}
	}
	if o.Kind == Sent || o.Kind == Received {
		w.observeCarried(o)
	}
}

func (by *Watcher) wants(kind ObservationKind) bool {
	if by.Kind != 0 {
		return kind == by.Kind
	}
	return by.Watch != nil && (by.Messages || kind != Sent && kind != Received)
}

// judgeState asks the watchers that judge whole states.
func (w *World) judgeState() {
	if w.starting() {
		return
	}
	for i := range w.watchers {
		w.hear(&w.watchers[i], w.watchers[i].State)
	}
}

// hear asks a watcher for a verdict that is not about a process, unless it has none to
// give.
func (w *World) hear(by *Watcher, judge func() string) {
	if judge == nil {
		return
	}
	w.blamed = process.None
	if text := judge(); text != "" {
		w.accuse(by, text)
	}
}

func (w *World) accuse(by *Watcher, text string) {
	w.violate(Violation{Judge: by.Name, Property: by.Property, Process: w.blamed, Text: text})
}

// scene is a run as judges see it.
type scene World

func (s *scene) Config() *process.Config   { return s.config }
func (s *scene) Waiting(p process.ID) bool { return s.clients[p].phase == clientWaiting }
func (s *scene) Inside(p process.ID) bool  { return s.clients[p].phase == clientInside }
func (s *scene) Down(p process.ID) bool    { return s.procs[p].down }

func (s *scene) Leader(p process.ID) process.ID {
	if s.meter.leaders == nil || s.procs[p].down {
		return process.None
	}
	return s.meter.leaders[p].Leader
}

func (s *scene) Now() process.Duration                { return s.now }
func (s *scene) Clock(p process.ID) process.Duration  { return (*World)(s).Clock(p) }
func (s *scene) Incarnation(p process.ID) uint32      { return s.procs[p].incarnation }
func (s *scene) Addressee(from, to process.ID) uint32 { return s.oracle.addressee(from, to) }

func (w *World) scene() *scene { return (*scene)(w) }

// on makes a watcher that judges observations of one kind.
func (w *World) on(kind ObservationKind, p process.Property, judge func(o *Observation) *property.Violation) Watcher {
	return Watcher{Property: p, Kind: kind, Watch: func(o *Observation) string { return w.say(judge(o)) }}
}

// say returns the text of a verdict, and notes the process that it names.
func (w *World) say(v *property.Violation) string {
	if v == nil {
		return ""
	}
	w.blamed = v.Process
	return v.Text
}

// sayOf is say for the verdict about one of several properties.
func (w *World) sayOf(judged process.Property, all []*property.Violation) string {
	for _, v := range all {
		if v != nil && v.Property == judged {
			return w.say(v)
		}
	}
	return ""
}

// violate notes a violation and ends the run unless it may continue.
func (w *World) violate(v Violation) {
	v.At, v.Record = w.now, w.records
	if len(w.violations) < max(1, w.cfg.KeepGoing) {
		w.violations = append(w.violations, v)
	}
	if len(w.violations) >= max(1, w.cfg.KeepGoing) {
		w.end(Violated)
	}
}

// Claimed returns the judges of the properties that a Spec claims under the given
// configuration and that can be judged from outside, and that of its invariant. The
// judges of invariants and deadlocks look at the whole system after each event. So they
// are left out for more than 64 processes, unless they are asked for.
func Claimed(spec *process.Spec, c *process.Config) []Judge {
	judges, mode := []Judge{}, spec.Mode(c)
	for _, claim := range spec.Claims.Properties {
		unseen := c.N > maxJudged && (claim.Property == process.NoPhantom || claim.Property == process.DeadlockFound || claim.Property == process.Convergence)
		if unseen || !claim.Holds(mode) {
			continue
		}
		if judge := judgeOf(&claim, spec, c); judge != nil {
			judges = append(judges, judge)
		}
	}
	if spec.Invariant != nil && c.N <= maxJudged {
		judges = append(judges, StateInvariant)
	}
	return judges
}

// maxJudged is the largest number of processes for which whole states are judged
// without being asked for.
const maxJudged = 64

func judgeOf(claim *process.Claim, spec *process.Spec, c *process.Config) Judge {
	switch claim.Property {
	case process.BoundedBypass:
		return BypassSince(int(claim.Bound.Eval(process.Params{N: c.N})), claim.Since)
	case process.ClockBound:
		return ClockBound(claim.Bound)
	case process.AtMostK:
		return AtMost(property.Units(spec, c))
	}
	return JudgeOf(claim.Property)
}

// JudgeOf returns the judge of a property that needs no number, or nil if the property
// cannot be judged from outside.
func JudgeOf(p process.Property) Judge {
	switch p {
	case process.ValueAgreement, process.ValueValidity, process.Decision, process.DecideOnce, process.Unanimity, process.VectorValidity:
		return decisions(p)
	case process.Atomicity, process.StableDecision, process.UnanimousCommit, process.NonTriviality, process.RepairTermination, process.NonBlocking:
		return transactions(p)
	case process.NoPhantom, process.DeadlockFound:
		return deadlocks(p)
	}
	return judges[p]
}

var judges = map[process.Property]Judge{
	process.MutualExclusion:     AtMost(1),
	process.FencesGrow:          FencesGrow,
	process.FencesGrowCausally:  FencesGrowCausally,
	process.Progress:            Progress,
	process.OrderHappenedBefore: HappenedBeforeOrder,
	process.OrderTimestamp:      TimestampOrder,
	process.OrderArrival:        ArrivalOrder,
	process.OneToken:            OneToken,
	process.Quiescence:          Quiescence,
	process.LeaderAgreement:     LeaderAgreement,
	process.RoundAgreement:      RoundAgreement,
	process.LeaderValidity:      LeaderValidity,
	process.LeaderTermination:   LeaderTermination,
	process.SingleLeader:        SingleLeader,
	process.StrongAccuracy:      StrongAccuracy,
	process.MulticastAgreement:  MulticastAgreement,
	process.OrderFIFO:           OrderFIFO,
	process.OrderCausal:         OrderCausal,
	process.OrderTotal:          OrderTotal,
	process.StrongCompleteness:  StrongCompleteness,
	process.EventualAccuracy:    EventualAccuracy,
	process.ClockCondition:      ClockCondition,
	process.StrongClock:         StrongClock,
	process.ConsistentCut:       ConsistentCut,
	process.StateInvariant:      StateInvariant,
	process.Convergence:         Convergence,
	superpeer.Place:             ofCensus(superpeer.Place, (*superpeer.Census).Place),
	superpeer.Cap:               superPeerCap,
	superpeer.Spread:            ofCensus(superpeer.Spread, (*superpeer.Census).Spread),
}

// observeCarried shows judges the message inside one that a carrier sends for a layer
// above, as if that layer had sent it itself. So an algorithm is watched in the same
// way whatever it runs above.
func (w *World) observeCarried(o Observation) {
	decl := w.cfg.Spec.Message(o.Message.Layer, o.Message.Type)
	if decl == nil || !carries(decl) {
		return
	}
	var inner process.Message
	if inner.DecodeRaw(o.Message.Data, w.config.N) != nil || inner.Layer <= o.Message.Layer {
		return
	}
	inner.From, inner.To = o.Message.From, o.Message.To
	o.Message = &inner
	w.observe(o)
}

func carries(decl *process.MessageSpec) bool {
	for _, use := range decl.Fields {
		if use.Carried {
			return true
		}
	}
	return false
}

// ghost tracks what happened before what. It travels with the messages, but the
// algorithms do not see it. It costs N numbers per process and per message in flight,
// so it exists only if a judge needs it.
type ghost struct {
	clocks [][]uint64
	fences []process.Fence // the largest in the causal past of each process

	sent    uint64 // messages so far, a broadcast counting once
	message uint64 // the number of the message that is being sent or received now
}

func newGhost(n int) *ghost {
	g := &ghost{fences: make([]process.Fence, n)}
	for range n {
		g.clocks = append(g.clocks, make([]uint64, n))
	}
	return g
}

// tick is called before each step, and before each delivery to the application: a step
// of several layers may have several events.
func (g *ghost) tick(p process.ID) { g.clocks[p][p]++ }

// attach gives a message its number, and the causal past of its sender.
func (g *ghost) attach(p process.ID, x *extra) {
	g.sent++
	g.message = g.sent
	x.ghost = append(append(x.ghost[:0], g.clocks[p]...), g.sent)
	x.ghostFence = g.fences[p]
}

// join is called before the step that receives.
func (g *ghost) join(p process.ID, x *extra) {
	own := g.clocks[p]
	for i := range own {
		own[i] = max(own[i], x.ghost[i])
	}
	g.message = x.ghost[len(own)]
	g.fences[p] = max(g.fences[p], x.ghostFence)
}

package process

// Needs is what an algorithm assumes of the layers below it. It does not need what is
// not named here.
type Needs struct {
	FIFO          bool // links keep the order of messages
	Causal        bool // delivery keeps happened-before across links
	Reliable      bool // links lose nothing
	NoDuplication bool // links deliver nothing twice
	Synchrony     bool // message delay is bounded by Config.D, and timers rely on it
	Clock         bool // events carry the local clock
	Elector       bool // recovers through an election in a layer below
	Awake         bool // a process that waits relies on others that start without a request
	Load          bool // hosts report how busy processes are (event Load), and the least busy leads
	Detector      DetectorKind
	Topology      TopologyKind
}

// DetectorKind is how good a failure detector must be.
type DetectorKind uint8

// The kinds of failure detectors.
const (
	NoDetector         DetectorKind = iota
	UnreliableDetector              // suspicions may be wrong and are then withdrawn
	ReliableDetector                // Fail is a fact
)

// TopologyKind is which part of Config.Topology an algorithm uses.
type TopologyKind uint8

// The kinds of topologies.
const (
	Complete TopologyKind = iota // everyone can send to everyone
	RingTopology
	Tree
	Quorums
	Centre    // one coordinator, which the others ask
	Commander // one process proposes, and all agree on its value; messages go between all
)

// Fault is something that may go wrong in a run.
type Fault uint8

// The faults.
const (
	Reorder Fault = iota + 1
	Loss
	Duplication
	CrashBystander // a process that neither waits nor holds
	CrashWaiter
	CrashHolder
	CrashSpecial // the coordinator, the process with the token, the highest label
	CrashAny
	AmnesiaRestart // restart with only the durable fields
	Slowness       // delays beyond Config.D
)

var faultNames = [...]string{"", "reordering", "loss", "duplication", "crash of a bystander",
	"crash of a waiter", "crash of the holder", "crash of the special process", "crash of any process", "restart", "slowness"}

// String returns the name of the fault.
func (f Fault) String() string { return faultNames[f] }

// Claims is what an algorithm promises, each with its condition. Simulators and
// checkers test exactly these claims.
type Claims struct {
	Properties []Claim
	Costs      []Cost
	Survives   []Survival
	// Worst returns the election of n processes that the costs in the regime Worst are
	// about; nil: all start, and labels rise in the direction of sending.
	Worst func(n int) Arrangement
}

// Arrangement is who stands where on a ring, and who starts an election. It names
// processes by how good they are, from 0, the worst: by label, or by load.
type Arrangement struct {
	Ring     []int // in the direction of sending; nil: rising
	Starters []int // nil: all that are up
}

// Property is a predicate over runs, identified by its name. A property that only one
// algorithm promises is declared beside that algorithm.
type Property string

// The properties.
const (
	MutualExclusion     Property = "mutual exclusion"        // at most one process is inside
	AtMostK             Property = "at most k inside"        // at most Params.K processes are inside
	Progress            Property = "progress"                // no starvation and no deadlock
	OrderArrival        Property = "order of arrival"        // entries in the order in which requests reach the coordinator
	OrderTimestamp      Property = "order of time stamps"    // entries in the order of (clock, id)
	OrderHappenedBefore Property = "happened-before order"   // a request that happened before another enters first
	BoundedBypass       Property = "bounded bypass"          // others enter at most Bound times while one waits
	FencesGrow          Property = "fences grow"             // each fence is larger than that of every earlier grant
	FencesGrowCausally  Property = "fences grow causally"    // unique, and growing along happened-before
	OneToken            Property = "one token"               // there is one token, held or in transit
	LeaderAgreement     Property = "agreement on the leader" // all processes name the same leader of a term
	RoundAgreement      Property = "one leader in a round"   // all processes name the same leader of a round
	LeaderValidity      Property = "valid leader"            // the leader is the best live process
	LeaderTermination   Property = "election terminates"     // every live process learns a leader
	Quiescence          Property = "quiescence"              // no message circulates forever
	StrongCompleteness  Property = "strong completeness"     // every crashed process is eventually suspected by all
	StrongAccuracy      Property = "strong accuracy"         // no process is suspected before it crashes
	EventualAccuracy    Property = "eventual accuracy"       // from some time on no live process is suspected
	ClockCondition      Property = "clock condition"         // a happened before b implies C(a) < C(b)
	StrongClock         Property = "strong clock condition"  // also the converse
	ClockBound          Property = "clock bound"             // clocks differ by at most Bound
	MulticastAgreement  Property = "agreement on delivery"   // if one correct process delivers, all do
	OrderFIFO           Property = "FIFO order"              // deliveries in the order of each sender
	OrderCausal         Property = "causal order"            // deliveries respect happened-before
	OrderTotal          Property = "total order"             // all deliver in one sequence
	ConsistentCut       Property = "consistent cut"          // no message is received inside the cut and sent outside
	ValueAgreement      Property = "agreement"               // no two processes decide differently
	ValueValidity       Property = "validity"                // what is decided was proposed
	Decision            Property = "decision"                // every live process decides
	NoPhantom           Property = "no phantom deadlock"     // every declared deadlock exists; judged by Spec.Waits
	DeadlockFound       Property = "deadlocks are found"     // every lasting deadlock is declared; judged by Spec.Waits
	SingleLeader        Property = "single leader"           // at most one live process considers itself the leader
	StateInvariant      Property = "invariant"               // Spec.Invariant holds in every state
	DecideOnce          Property = "single decision"         // no process decides twice
	Convergence         Property = "convergence"             // from any state to a legitimate one
	Atomicity           Property = "atomicity"               // no process commits a transaction that another aborts
	StableDecision      Property = "stable decision"         // a process never changes its commit or abort, not even after a crash
	UnanimousCommit     Property = "unanimous commit"        // a commit only if all voted yes
	NonTriviality       Property = "non-triviality"          // an abort only if a process voted no or too late, or something failed
	RepairTermination   Property = "decision after repair"   // once all processes are up again, every process that voted decides
	NonBlocking         Property = "non-blocking"            // every live process that voted decides, although others are down
	Unanimity           Property = "unanimity"               // if all correct proposers propose the same value, it is decided
	VectorValidity      Property = "vector validity"         // the value decided for process i is what i proposed, if i is correct
)

// Properties are those that any algorithm may promise.
var Properties = []Property{
	MutualExclusion, AtMostK, Progress, OrderArrival, OrderTimestamp, OrderHappenedBefore,
	BoundedBypass, FencesGrow, FencesGrowCausally, OneToken, LeaderAgreement, RoundAgreement, LeaderValidity,
	LeaderTermination, Quiescence, StrongCompleteness, StrongAccuracy, EventualAccuracy, ClockCondition,
	StrongClock, ClockBound, MulticastAgreement, OrderFIFO, OrderCausal, OrderTotal, ConsistentCut,
	ValueAgreement, ValueValidity, Decision, NoPhantom, DeadlockFound, SingleLeader, StateInvariant,
	DecideOnce, Convergence, Unanimity, VectorValidity,
	Atomicity, StableDecision, UnanimousCommit, NonTriviality, RepairTermination, NonBlocking,
}

// String returns the name of the property.
func (p Property) String() string { return string(p) }

// Claim is one promised property.
type Claim struct {
	Property Property
	Mode     string   // the option value it is about ("mode" option); empty: all
	When     string   // the condition in words; empty: whenever Needs hold
	Bound    *Formula // BoundedBypass, ClockBound
	Since    Since    // BoundedBypass: the moment from which entries of others are counted
	Fails    bool     // the algorithm states that it does not have the property
	// Within is the time after the last fault from which it holds, for
	// StrongCompleteness and EventualAccuracy; nil: a finite run cannot judge it.
	Within func(c *Config) Duration
}

// Holds reports whether the property is promised in a mode.
func (c *Claim) Holds(mode string) bool { return !c.Fails && (c.Mode == "" || c.Mode == mode) }

// Since is the moment of a request from which entries of others are counted.
type Since uint8

// The moments.
const (
	SinceRequest Since = iota
	SinceArrival       // the coordinator has it
	SinceKnown         // every process to which it was sent has it
)

// Survival is a fault under which an algorithm keeps its claims.
type Survival struct {
	Fault Fault
	Mode  string // the option value it is about ("mode" option); empty: all
	When  string // the condition in words; empty: whenever Needs hold
	How   string // in one line: how the algorithm survives it
}

// Mode returns the value of the option that claims refer to: the option called "mode",
// or "" for an algorithm that has none.
func (s *Spec) Mode(c *Config) string {
	if o := s.Option("mode"); o != nil {
		return c.Option(o.Name, o.Default)
	}
	return ""
}

// Modes returns the possible values of Mode.
func (s *Spec) Modes() []string {
	if o := s.Option("mode"); o != nil {
		return o.Values
	}
	return []string{""}
}

// Survives reports whether the algorithm claims to survive a fault in a mode, perhaps
// under a condition. Surviving the crash of any process implies surviving each kind of
// crash, and vice versa.
func (s *Spec) Survives(f Fault, mode string) bool {
	for _, v := range s.Claims.Survives {
		crash := v.Fault == CrashAny && CrashBystander <= f && f <= CrashSpecial
		if (v.Fault == f || crash) && (v.Mode == "" || v.Mode == mode) {
			return true
		}
	}
	if f != CrashAny {
		return false
	}
	for kind := CrashBystander; kind <= CrashSpecial; kind++ {
		if !s.Survives(kind, mode) {
			return false
		}
	}
	return true
}

// Regime is the load or the circumstances under which a cost is measured.
type Regime uint8

// The regimes.
const (
	AnyLoad    Regime = iota + 1
	Idle              // one request at a time, the system quiet before it
	Saturated         // every process requests again right after leaving
	OneStarter        // one process starts the election
	AllStart          // all processes start the election together
	Worst             // the worst arrangement of labels and starters
	Steady            // nothing happens
)

var regimeNames = [...]string{"", "any", "idle", "saturated", "one-starter", "all-start", "worst", "steady"}

// String returns the name of the regime.
func (r Regime) String() string { return regimeNames[r] }

// Metric is a measured figure.
type Metric uint8

// The metrics. Delays are in units of D, throughput in entries per D with E = 0.
const (
	MessagesPerEntry Metric = iota + 1
	ClientDelay
	SyncDelay
	Throughput
	Bypass
	MessagesPerElection
	ElectionTime
	MessagesPerMulticast
	MessagesPerPeriod
	MessagesPerDecision
	DetectionTime
	MessageCount // of one run of the algorithm
	DecisionTime // from the first proposal to the last decision
	LogWrites    // of one transaction: number of times that a process saves its state
)

var metricNames = [...]string{"", "messages_per_entry", "client_delay", "sync_delay", "throughput", "bypass",
	"messages_per_election", "time", "messages_per_multicast", "messages_per_period", "messages_per_decision",
	"detection_time", "messages", "decision_time", "log_writes"}

// String returns the name of the metric as in tables and JSON.
func (m Metric) String() string { return metricNames[m] }

// Cost is what an algorithm costs in one regime: exactly Exact, or between Lo and Hi. A
// nil bound means no bound.
type Cost struct {
	Metric Metric
	Regime Regime
	Mode   string // the option value it is about ("mode" option); empty: all
	When   string // the condition in words
	Exact  *Formula
	Lo, Hi *Formula
	Mean   *Formula // the expectation, if the figure is random
	Said   []Figure
}

// Figure is what a document says about a cost.
type Figure struct {
	Document string // such as "[D4]"
	Text     string // as printed, such as "3(N-1)"
	Wrong    string // why it is wrong; empty if it is right
}

// Params are the variables of the formulas.
type Params struct {
	N        int // processes
	Live     int // of them alive
	K        int // size of a quorum, or units of the resource
	M        int // votes needed
	Replicas int
	Rank     int // of the starter of an election, from 1, among N
	Starters int
	Distance int // hops from the requester to the token, or from the starter to the maximum
	Polls    int // requests sent for one entry
	F        int // crashes, or Byzantine processes, that an agreement is set up for

	// For clocks, times in D: the least and the largest delay of a message; the
	// rate error of a clock and the rate of a correction, both as a fraction; the
	// time between rounds and the longest wait for an answer; and the number of
	// exchanges in a round.
	MinDelay, MaxDelay float64
	Drift, Slew        float64
	Interval, Limit    float64
	Exchanges          int
}

// Formula is a closed form over Params. It is for tables and tests; no machine
// computes with it.
type Formula struct {
	Text string // as printed, such as "2(N-1)"
	Eval func(Params) float64
}

// Constant returns the formula of a figure that depends on nothing.
func Constant(text string, value float64) *Formula {
	return &Formula{Text: text, Eval: func(Params) float64 { return value }}
}

// PerOther returns the formula of a number of messages for each other process.
func PerOther(text string, each int) *Formula {
	return &Formula{Text: text, Eval: func(p Params) float64 { return float64(each * (p.N - 1)) }}
}

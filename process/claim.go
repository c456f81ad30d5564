package process

// Needs is what an algorithm assumes of the world below it. What is not named
// here it does not need.
type Needs struct {
	FIFO          bool // links keep the order of messages
	Causal        bool // delivery keeps happened-before across links
	Reliable      bool // links lose nothing
	NoDuplication bool // links deliver nothing twice
	Synchrony     bool // message delay is bounded by Config.D, and timers rely on it
	Clock         bool // events carry the local clock
	Elector       bool // recovers through an election in a layer below
	Awake         bool // a process that waits relies on others that have started without being asked
	Load          bool // hosts report how busy processes are (event Load), and the least busy leads
	Detector      DetectorKind
	Topology      TopologyKind
}

// DetectorKind is how good a failure detector must be.
type DetectorKind uint8

// The kinds of failure detectors.
const (
	NoDetector         DetectorKind = iota
	UnreliableDetector              // suspicions may be wrong and are taken back
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
	AmnesiaRestart // back with durable fields only
	Slowness       // delays beyond Config.D
)

var faultNames = [...]string{"", "reordering", "loss", "duplication", "crash of a bystander",
	"crash of a waiter", "crash of the holder", "crash of the special process", "crash of any process", "restart", "slowness"}

// String returns the name of the fault.
func (f Fault) String() string { return faultNames[f] }

// Claims is what an algorithm promises, each with the condition under which it
// holds. Simulators and checkers test exactly what stands here.
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

// Property is a predicate over runs, by its name. One that only one algorithm promises is
// declared beside that algorithm.
type Property string

// The properties.
const (
	MutualExclusion     Property = "mutual exclusion"        // at most one process is inside
	AtMostK             Property = "at most k inside"        // at most Params.K processes are inside
	Progress            Property = "progress"                // nobody waits forever while others enter or nobody does
	OrderArrival        Property = "order of arrival"        // entries in the order in which requests reach the coordinator
	OrderTimestamp      Property = "order of time stamps"    // entries in the order of (clock, id)
	OrderHappenedBefore Property = "happened-before order"   // a request that happened before another enters first
	BoundedBypass       Property = "bounded bypass"          // others enter at most Bound times while one waits
	FencesGrow          Property = "fences grow"             // each fence is larger than that of every earlier grant
	FencesGrowCausally  Property = "fences grow causally"    // unique, and growing along happened-before
	OneToken            Property = "one token"               // tokens held and in transit are one
	LeaderAgreement     Property = "agreement on the leader" // nobody differs on the leader of a term
	RoundAgreement      Property = "one leader in a round"   // nobody differs on the leader of a round, which a term is one of
	LeaderValidity      Property = "valid leader"            // the leader is the best live process
	LeaderTermination   Property = "election terminates"     // every live process learns a leader
	Quiescence          Property = "quiescence"              // no message circulates forever
	StrongCompleteness  Property = "strong completeness"     // every crashed process is in the end suspected by all
	StrongAccuracy      Property = "strong accuracy"         // nobody is suspected before it crashes
	EventualAccuracy    Property = "eventual accuracy"       // from some time on no live process is suspected
	ClockCondition      Property = "clock condition"         // a happened before b implies C(a) < C(b)
	StrongClock         Property = "strong clock condition"  // and only then
	ClockBound          Property = "clock bound"             // clocks differ by at most Bound
	MulticastAgreement  Property = "agreement on delivery"   // if one correct process delivers, all do
	OrderFIFO           Property = "FIFO order"              // deliveries in the order of each sender
	OrderCausal         Property = "causal order"            // deliveries respect happened-before
	OrderTotal          Property = "total order"             // all deliver in one sequence
	ConsistentCut       Property = "consistent cut"          // nothing received inside the cut was sent outside
	ValueAgreement      Property = "agreement"               // nobody decides differently
	ValueValidity       Property = "validity"                // what is decided was proposed
	Decision            Property = "decision"                // every live process decides
	NoPhantom           Property = "no phantom deadlock"     // a declared deadlock exists; judged by Spec.Waits
	DeadlockFound       Property = "deadlocks are found"     // a deadlock that lasts is declared; the same
	SingleLeader        Property = "single leader"           // of those who are up at most one takes itself for the leader
	StateInvariant      Property = "invariant"               // Spec.Invariant holds in every state
	DecideOnce          Property = "single decision"         // nobody decides twice
	Convergence         Property = "convergence"             // from any state to a legitimate one
	Atomicity           Property = "atomicity"               // nobody commits a transaction that another aborts
	StableDecision      Property = "stable decision"         // whoever has committed or aborted never changes that, not even after a crash
	UnanimousCommit     Property = "unanimous commit"        // a commit only if all voted yes
	NonTriviality       Property = "non-triviality"          // an abort only if somebody voted no or too late, or something failed
	RepairTermination   Property = "decision after repair"   // once everybody is up again, everyone who voted decides
	NonBlocking         Property = "non-blocking"            // everyone who voted and is up decides, although others are down
	Unanimity           Property = "unanimity"               // if all correct proposers propose the same, it is decided
	VectorValidity      Property = "vector validity"         // what is decided in place i is what process i proposed, if it is correct
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
	Since    Since    // BoundedBypass: from when on entries of others are counted
	Fails    bool     // the algorithm is known not to have it, and says so
	// Within is how long after the last fault it holds, for StrongCompleteness
	// and EventualAccuracy; nil: nobody can judge it in a finite run.
	Within func(c *Config) Duration
}

// Since is the moment of a request from which on it is counted how often others
// enter before it.
type Since uint8

// The moments.
const (
	SinceRequest Since = iota
	SinceArrival       // the coordinator has it
	SinceKnown         // everyone to whom it was sent has it
)

// Survival is a fault that an algorithm keeps its claims under.
type Survival struct {
	Fault Fault
	Mode  string // the option value it is about ("mode" option); empty: all
	When  string // the condition in words; empty: whenever Needs hold
	How   string // in one line: what makes it survive
}

// Mode returns the value of the option that claims are about: the one called
// "mode", or nothing for an algorithm that has none.
func (s *Spec) Mode(c *Config) string {
	for _, o := range s.AllOptions() {
		if o.Name == "mode" {
			return c.Option(o.Name, o.Default)
		}
	}
	return ""
}

// Modes returns what Mode can be.
func (s *Spec) Modes() []string {
	for _, o := range s.AllOptions() {
		if o.Name == "mode" {
			return o.Values
		}
	}
	return []string{""}
}

// Survives reports whether the algorithm claims to survive a fault in a mode,
// perhaps under a condition. Who survives the crash of any process survives each
// kind of crash, and the other way round.
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

// Regime is the load or the circumstances in which a cost is measured.
type Regime uint8

// The regimes.
const (
	AnyLoad    Regime = iota + 1
	Idle              // one request at a time, the system quiet before it
	Saturated         // everyone requests again at once after leaving
	OneStarter        // one process starts the election
	AllStart          // all processes start the election together
	Worst             // the worst arrangement of labels and starters
	Steady            // nothing happens
)

var regimeNames = [...]string{"", "any", "idle", "saturated", "one-starter", "all-start", "worst", "steady"}

// String returns the name of the regime.
func (r Regime) String() string { return regimeNames[r] }

// Metric is a figure that is measured.
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
	LogWrites    // of one transaction: how often a process saves its state
)

var metricNames = [...]string{"", "messages_per_entry", "client_delay", "sync_delay", "throughput", "bypass",
	"messages_per_election", "time", "messages_per_multicast", "messages_per_period", "messages_per_decision",
	"detection_time", "messages", "decision_time", "log_writes"}

// String returns the name of the metric as in tables and JSON.
func (m Metric) String() string { return metricNames[m] }

// Cost is what an algorithm costs in one regime: exactly Exact, or between Lo
// and Hi. A nil bound is none.
type Cost struct {
	Metric Metric
	Regime Regime
	Mode   string // the option value it is about ("mode" option); empty: all
	When   string // the condition in words
	Exact  *Formula
	Lo, Hi *Formula
	Mean   *Formula // the expectation, where the figure is random
	Said   []Figure
}

// Figure is what a document says about a cost.
type Figure struct {
	Document string // file name
	Text     string // as printed, such as "3(N-1)"
	Wrong    string // why it is off; empty if it is right
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

	// For clocks, times in D: the least and the largest delay of a message, how
	// fast a clock runs wrong and how fast it works in a correction, both as a
	// part of the time, the time between rounds and the longest wait for an answer,
	// and how many exchanges there are in a round.
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

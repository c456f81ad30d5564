package sim

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// World is a run in progress. It belongs to one goroutine.
type World struct {
	cfg    Config // with defaults
	config *process.Config
	queue  queue
	now    process.Duration
	item   item // the item that happens now

	fx     process.Effects
	choose process.Chooser
	ev     process.Event   // of the present step
	msg    process.Message // delivered by it
	msg2   process.Message // sent by it, for watchers

	procs     []proc
	clients   []client
	timers    table // of timerKey: seq of its item, negative during a pause
	backlog   []item
	payloads  payloads
	links     links
	durable   map[process.ID][]byte
	walk      process.Fields
	saves     [][]byte // data that slow disks have not written yet
	freeSaves []int32  // positions in saves that are not in use
	clocks    []clock
	doomed    []Fault // CrashInStep faults that have not happened
	cuts      []cut
	losses    []Fault // Lose, Repeat and Slow faults that have not happened
	oracle    oracle

	timerDice, choiceDice, clientDice, diskDice random
	drawn                                       table               // of keyed draws: how many there were
	decided                                     map[uint64]*sampler // timers with given delays, by timerKey
	chosen                                      int                 // number of given choices that were taken
	picked                                      []int               // choices of the present step, if a journal is kept

	hand    *hand // nil: everything happens by itself
	untaken *Untaken

	watchers []Watcher
	curious  bool // some watcher wants messages
	observed Observation
	ghost    *ghost
	meter    meter
	idle     idleTurn

	disturbed  process.Duration // when a fault last began or ended
	background int              // pending items that are not events of the run
	events     uint64
	records    uint64 // the number of the last record, whether it was written or not
	current    uint64 // the record that causes what is scheduled now, or 0
	describer  *trace.Describer
	sinkError  error

	violations   []Violation
	reason       Reason
	global       bool       // some watcher judges whole states
	faults       bool       // see process.Global
	fired        bool       // a timer has expired
	hasty        bool       // and that while a message was in flight
	blamed       process.ID // the process that a violation found now names
	globalStates []GlobalState
}

// proc is a process from its host's point of view.
type proc struct {
	machine     process.Machine
	steps       uint64
	diskFree    process.Duration // when its last Save is on disk
	incarnation uint32
	down        bool
	paused      bool
	traitor     bool
	suspected   bool // by an unreliable detector, for a pause
}

// itemKind is what an item of the queue does.
type itemKind uint8

const (
	itemStart    itemKind = iota + 1
	itemDelivery          // arg: payload
	itemTimer             // arg: timer; layer
	itemExit              // the client leaves
	itemCommand           // arg: index of the command
	itemRequest           // the client asks to enter, by its regime
	itemFault             // arg: index of the fault
	itemRestart           // of a process, by itself
	itemResume            // of a process, by itself
	itemHeal              // arg: number of the partition
	itemSaved             // arg: index of the save
	itemDetect            // arg: what the detector finds
	itemNews              // arg: peer; layer: what is told
	itemElection          // the oracle elects
	itemElected           // arg: index of the election
	itemPatience          // the idle regime continues
	itemControl           // a schedule takes over
	itemTurn
	itemEnd        // background
	itemCheckStall // background
)

// Events of one instant happen in the order of these classes, within a class by rank,
// and for one rank in the order in which they were caused.
const (
	classFault = iota
	classResumed
	classDelivery
	classTimer // and exits
	classCommand
	classBackground
)

func order(class uint32, p process.ID) uint32 { return class<<24 | uint32(p) }

// New makes a run that has not begun.
func New(cfg Config) (*World, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	w := &World{cfg: cfg.withDefaults()}
	w.config = &w.cfg.Process
	w.queue.stale = w.stale
	w.queue.near = w.warm
	w.timerDice = newRandom(cfg.Seed, streamTimers)
	w.choiceDice = newRandom(cfg.Seed, streamChoices)
	w.clientDice = newRandom(cfg.Seed, streamClients)
	w.diskDice = newRandom(cfg.Seed, streamDisk)
	w.decide()
	w.links.init(&w.cfg)
	w.meter.init(w)
	w.procs = make([]proc, w.config.N)
	w.clients = make([]client, w.config.N)
	w.durable = map[process.ID][]byte{}
	w.initClocks()
	if cfg.Trace != nil {
		w.describer = trace.NewDescriber(cfg.Spec, w.config)
	}
	if cfg.Journal != nil {
		cfg.Journal.Begin(cfg.Spec, w.config, cfg.Header())
	}
	w.initJudges()
	w.schedule()
	w.initHand()
	return w, nil
}

// schedule puts everything that is known in advance into the queue.
func (w *World) schedule() {
	for p := range w.procs {
		w.procs[p].machine = w.cfg.Spec.New(process.ID(p), w.config)
		w.procs[p].incarnation = 1
		w.procs[p].traitor = slices.Contains(w.cfg.Traitors, process.ID(p))
		w.push(0, classResumed, process.ID(p), itemStart)
	}
	for i := range w.cfg.Faults {
		w.push(w.cfg.Faults[i].At, classFault, 0, itemFault).arg = int32(i)
	}
	for i := range w.cfg.Workload.Commands {
		c := &w.cfg.Workload.Commands[i]
		w.push(c.At, classCommand, c.Process, itemCommand).arg = int32(i)
	}
	w.startClients()
	w.push(w.cfg.Limit.Until, classBackground, 0, itemEnd)
	w.background++
	w.scheduleStallCheck()
}

// push schedules an item for a process. The caller fills in the rest of the item before
// the next push.
func (w *World) push(at process.Duration, class uint32, p process.ID, kind itemKind) *item {
	it := w.queue.push(int64(w.parked(at, kind)), order(class, p))
	it.kind, it.proc, it.incarnation, it.cause = kind, int32(p), w.procs[p].incarnation, w.current
	return it
}

// stale reports whether a revocable item has been cancelled.
func (w *World) stale(it *item) bool {
	if w.hand != nil && w.hand.gone[it.seq] {
		return true
	}
	switch it.kind {
	case itemTimer:
		return w.timers.get(timerKey(process.ID(it.proc), it.layer, process.Timer(it.arg))) != int64(it.seq)
	case itemExit:
		return w.clients[it.proc].exit != it.seq
	default:
		return w.idle.timeout != it.seq
	}
}

// Now returns the virtual time.
func (w *World) Now() process.Duration { return w.now }

// Config returns the configuration that the machines know.
func (w *World) Config() *process.Config { return w.config }

// Spec returns the algorithm.
func (w *World) Spec() *process.Spec { return w.cfg.Spec }

// Judged returns the properties that are judged in this run.
func (w *World) Judged() []process.Property {
	var judged []process.Property
	for i := range w.watchers {
		if p := w.watchers[i].Property; p != "" && !slices.Contains(judged, p) {
			judged = append(judged, p)
		}
	}
	return judged
}

// Machine returns the machine of a process. It must not be stepped.
func (w *World) Machine(p process.ID) process.Machine { return w.procs[p].machine }

// Status is what is visible of a process and its client from outside.
type Status struct {
	Down, Paused    bool
	Incarnation     uint64
	Waiting, Inside bool
	Fence           process.Fence // of the last entry
	Entries         int           // completed
}

// Status returns what is to be seen of a process.
func (w *World) Status(p process.ID) Status {
	pr, c := &w.procs[p], &w.clients[p]
	return Status{
		Down: pr.down, Paused: pr.paused, Incarnation: uint64(pr.incarnation),
		Waiting: c.phase == clientWaiting, Inside: c.phase == clientInside,
		Fence: c.fence, Entries: int(c.entries),
	}
}

// Pending returns the number of scheduled events.
func (w *World) Pending() int { return w.queue.pending() - w.background }

// Records returns the number of records so far.
func (w *World) Records() uint64 { return w.records }

// Events returns the number of events so far.
func (w *World) Events() uint64 { return w.events }

// Ended reports whether the run is over, and why.
func (w *World) Ended() (Reason, bool) { return w.reason, w.reason != 0 }

// Step executes the next event and reports whether the run continues. A failed
// assertion of a machine is a violation and ends the run.
func (w *World) Step() bool {
	defer w.recoverAssertion()
	return w.advance()
}

// run steps to the end. One deferred function covers all steps.
func (w *World) run() {
	defer w.recoverAssertion()
	for w.advance() {
	}
}

func (w *World) recoverAssertion() {
	switch broken := recover().(type) {
	case nil:
	case process.Violation:
		w.violate(Violation{Judge: "assertion", Process: w.fx.Self(), Text: string(broken)})
		w.end(Violated)
	default:
		panic(broken)
	}
}

// advance is Step without handling assertions. When only background items are left the
// run is over. So the last event, not the end of the background, sets the time.
func (w *World) advance() bool {
	if w.reason != 0 {
		return false
	}
	if w.queue.pending() == w.background && (w.hand == nil || !w.takesControl(true)) {
		w.end(Quiet)
		return false
	}
	it := &w.item
	w.queue.pop(it)
	w.now = process.Duration(it.at)
	w.events++
	w.current = 0
	w.handle(it)
	if w.global && w.reason == 0 {
		w.judgeState()
	}
	if w.idle.waiting {
		w.continueIdle()
	}
	if w.cfg.Limit.Events > 0 && w.events >= w.cfg.Limit.Events && w.reason == 0 {
		w.end(LimitReached)
	}
	if w.hand != nil {
		w.takesControl(false)
	}
	return w.reason == 0
}

// handle dispatches an item. The most frequent kinds come first.
func (w *World) handle(it *item) {
	switch it.kind {
	case itemDelivery:
		w.deliver(it)
	case itemTimer:
		w.fire(it)
	case itemExit:
		w.exit(it)
	case itemRequest:
		w.request(it)
	case itemCommand:
		w.command(it)
	case itemStart:
		w.step(process.ID(it.proc), &process.Event{Kind: process.Start, Incarnation: 1}, 0)
	case itemNews, itemElected:
		w.tell(it)
	case itemEnd:
		w.end(LimitReached)
	case itemCheckStall:
		w.checkStall()
	default:
		w.handleRare(it)
	}
}

func (w *World) handleRare(it *item) {
	p := process.ID(it.proc)
	switch it.kind {
	case itemFault:
		w.fault(&w.cfg.Faults[it.arg])
	case itemRestart:
		if w.procs[p].incarnation == it.incarnation {
			w.restart(p, it.cause)
		}
	case itemResume:
		w.resume(p)
	case itemHeal:
		w.heal(int(it.arg))
	case itemSaved:
		w.saved(it)
	case itemDetect:
		w.detect(it)
	case itemElection:
		w.elect()
	case itemPatience:
		w.idle.patient = false
	case itemControl:
		w.events--
		w.takeControl()
	case itemTurn:
		w.turn()
	default:
		panic(fmt.Sprintf("sim: item of kind %d", it.kind))
	}
}

// end ends the run, once.
func (w *World) end(reason Reason) {
	if w.reason != 0 {
		return
	}
	w.reason = reason
	w.meter.close(w)
	for i := range w.watchers {
		if reason == Quiet {
			w.hear(&w.watchers[i], w.watchers[i].Quiet)
		}
		w.hear(&w.watchers[i], w.watchers[i].End)
	}
}

package check

import "github.com/conclave-io/conclave/process"

// worker finds the possible successors of a state. It looks up what it needs in its own
// view of the space, which it fills as it meets new parts.
type worker struct {
	*stepper
	views   []view            // of local states, by number
	links   []linkContents    // of channels, by number
	puts    memo[putting]     // by channel and message
	steps   memo[uint32]      // a local state and a message: where the edges are; see list
	listed  []edge            // all edges, those of a list in a row; the first is of none
	sent    []send            // of all edges
	stopped [][]stop          // of all edges, by edge.stops
	extras  []extra           // of all edges, by edge.extra
	wrongs  []string          // why edges are broken
	returns map[string]uint32 // restarts, by local state and incarnations of the others

	visited  *visited
	believed *belief                         // nil without reduction
	surprise func(change func(next *belief)) // is told what it does not know
	spread   spread                          // scratch
	several  []uint64                        // the same: sets of processes
	kinds    []uint64                        // by channel: the types of all messages on it; 0: not asked yet

	capacity    int         // how many may be inside
	overtakings int         // how often others may enter while somebody waits
	normal      *normalizer // nil: nothing is normalised
	global      *global     // nil: no invariant is checked, and no deadlock
	origin      []uint32    // the state that is being expanded
	scene       scene       // see sceneOf
	load        func(p process.ID) int64

	open    uint32 // the interests that it has not come through
	unspent uint32 // the budgets that it has not used up

	// The successors of the state that is being expanded.
	next    []uint32
	found   []successor
	moves   int      // successors that are no faults
	before  []uint32 // scratch
	touched uint64   // keeps what was fetched from being thrown away
}

// view is what a worker knows of a local state.
type view struct {
	print
	ready   bool
	phase   phase
	down    bool
	asked   uint8
	own     uint32 // where the edges are of what may happen without a message
	crashed uint32 // the local state after a crash
	state   *local
}

// successor is a state that may come next.
type successor struct {
	print
	action action
	broken *Violation // what is wrong with it, or nil
}

// memo is a hash table whose keys are pairs of numbers. The second number is above 0.
type memo[V any] struct {
	entries []memoEntry[V]
	used    int
}

type memoEntry[V any] struct {
	key uint64 // 0: empty
	val V
}

func memoKey(a, b uint32) uint64 { return uint64(a)<<32 | uint64(b) }

// get returns what belongs to a key, or nil.
func (m *memo[V]) get(key uint64) *V {
	mask := uint64(len(m.entries) - 1)
	for i := key * 0x9e3779b97f4a7c15 >> 20 & mask; ; i = (i + 1) & mask {
		switch e := &m.entries[i]; e.key {
		case key:
			return &e.val
		case 0:
			return nil
		}
	}
}

func (m *memo[V]) put(key uint64, val V) {
	if 4*m.used >= 3*len(m.entries) {
		old := m.entries
		*m = newMemo[V](2 * len(old))
		for i := range old {
			if old[i].key != 0 {
				m.put(old[i].key, old[i].val)
			}
		}
	}
	mask := uint64(len(m.entries) - 1)
	i := key * 0x9e3779b97f4a7c15 >> 20 & mask
	for m.entries[i].key != 0 {
		i = (i + 1) & mask
	}
	m.entries[i] = memoEntry[V]{key, val}
	m.used++
}

func newMemo[V any](n int) memo[V] { return memo[V]{entries: make([]memoEntry[V], n)} }

// linkContents is what a worker knows about the messages on a link.
type linkContents struct {
	print
	takes []taking // what may be delivered, and what is left then
	first taking   // of takes
	rest  print    // what the first changes of the print
}

// putting is what a message makes of a channel.
type putting struct {
	to    uint32 // the channel after it
	delta print  // of the print
}

func newWorker(sp *space) *worker {
	open, _ := sp.cfg.interests()
	w := &worker{
		open: open, unspent: 1<<budgetCount - 1,
		capacity: sp.cfg.capacity(), overtakings: sp.cfg.overtakings(),
		stepper: newStepper(sp), puts: newMemo[putting](1 << 10), steps: newMemo[uint32](1 << 10),
		listed: make([]edge, 1), stopped: make([][]stop, 1), extras: make([]extra, 1), returns: map[string]uint32{},
		links: make([]linkContents, 1),
	}
	w.normal = newNormalizer(w)
	if sp.spec.Needs.Load {
		w.load = func(p process.ID) int64 { return sp.cfg.Loads[p] }
	}
	if sp.cfg.checks(process.StateInvariant) || sp.cfg.judgesDeadlocks() {
		w.global = &global{}
	}
	return w
}

// view returns what is known of a local state.
func (w *worker) view(id uint32) *view {
	if int(id) < len(w.views) && w.views[id].ready {
		return &w.views[id]
	}
	return w.meet(id)
}

// meet makes the view of a local state that is new to this worker.
func (w *worker) meet(id uint32) *view {
	w.mu.Lock()
	l, f := w.locals[id], w.prints[id]
	w.mu.Unlock()
	v := view{print: f, ready: true, phase: l.phase, down: l.down, asked: l.asked, state: l}
	if w.cfg.faulty() && !l.down {
		v.crashed = w.downAfter(l)
	}
	v.own = w.keep(w.ownSteps(l))
	known := room(&w.views, id)
	*known = v
	return known
}

// ownSteps returns what may happen to a process without a message.
func (w *worker) ownSteps(l *local) []edge {
	var edges []edge
	add := func(kind actionKind, argument uint64) {
		taken := w.edges(l, edge{kind: kind, argument: argument}, func() { w.own(kind, argument) })
		if w.believed != nil {
			w.learn(w.believed.byKind(kind, int(l.proc)), taken)
		}
		edges = append(edges, taken...)
	}
	mutex, agreement := w.cfg.family().Locks(), w.cfg.family() == process.Agreement
	more := int(l.asked) < w.cfg.Entries && w.asks(l)
	switch {
	case l.down:
		return nil
	case mutex && l.phase == inside:
		add(actRelease, 0)
	case mutex && l.phase == waiting && w.cfg.Cancels > 0:
		add(actCancel, 0)
	case mutex && l.phase == idle && more:
		add(actAcquire, 0)
	case agreement && l.phase == idle && more:
		add(actPropose, 0)
	case w.cfg.transaction():
		for vote := process.Abort; vote <= process.Commit && more; vote++ {
			add(actPropose, uint64(vote))
		}
	case !mutex && !agreement && more:
		add(actCampaign, 0)
	}
	if w.cfg.Forgets > 0 && w.isIdle(l) {
		add(actForget, 0)
	}
	if w.mayNotice(l) {
		add(actNotice, uint64(l.leader))
	}
	if w.cfg.Timing != Never {
		for _, key := range l.timers {
			add(actFire, key)
		}
	}
	return edges
}

// edges takes a step in all its ways.
func (w *worker) edges(from *local, like edge, what func()) []edge {
	var edges []edge
	like.outcome = from.outcome
	f := w.printOfLocal(from)
	for _, t := range w.take(from, what) {
		e := like
		e.to, e.flags, e.fence, e.choice = t.to, t.flags, t.fence, uint16(t.choice)
		w.mu.Lock()
		e.delta = w.prints[t.to].minus(f)
		w.mu.Unlock()
		e.sendsAt, e.sendsN = uint32(len(w.sent)), uint16(len(t.sends))
		w.sent = append(w.sent, t.sends...)
		e.steps = uint8(t.steps)
		if len(t.stops) > 0 {
			e.stops = uint32(len(w.stopped))
			w.stopped = append(w.stopped, t.stops)
		}
		if t.flags&booked != 0 {
			e.extra = uint32(len(w.extras))
			w.extras = append(w.extras, t.extra)
		}
		if t.wrong != "" {
			e.wrong = uint16(len(w.wrongs))
			w.wrongs = append(w.wrongs, t.wrong)
		}
		edges = append(edges, e)
	}
	return edges
}

func (w *worker) printOfLocal(l *local) print { return printOf(l.appendTo(nil)) }

// keep stores a list of edges and returns where; an empty one is at 0.
func (w *worker) keep(edges []edge) uint32 {
	if len(edges) == 0 {
		return 0
	}
	edges[0].count = uint16(len(edges))
	w.listed = append(w.listed, edges...)
	return uint32(len(w.listed) - len(edges))
}

// list returns the edges that are kept somewhere.
func (w *worker) list(at uint32) []edge { return w.listed[at : at+uint32(w.listed[at].count)] }

// deliveries returns the steps of a process that receives a message.
func (w *worker) deliveries(localID, messageID uint32) []edge {
	key := memoKey(localID, messageID)
	if at := w.steps.get(key); at != nil {
		return w.list(*at)
	}
	w.mu.Lock()
	l, m := w.locals[localID], w.messages[messageID]
	w.mu.Unlock()
	edges := []edge{{kind: actDeliver, to: localID}} // who is down loses it
	if !l.down {
		edges = w.edges(l, edge{kind: actDeliver}, func() { w.receive(m) })
		if w.believed != nil && m.news == 0 {
			w.learn(w.believed.byMessage(w.layout.link(m.From, l.proc), w.believed.kind(m)), edges)
		}
	}
	at := w.keep(edges)
	w.steps.put(key, at)
	return w.list(at)
}

// put returns what a message makes of a channel that it is sent into.
func (w *worker) put(slot int, before, m uint32) putting {
	key := memoKey(before, m)
	if known := w.puts.get(key); known != nil {
		return *known
	}
	ordered := !w.cfg.Unordered && slot < w.layout.n+w.layout.links
	made := putting{to: w.channelPut(before, m, ordered)}
	made.delta = w.link(made.to).minus(w.link(before).print)
	w.puts.put(key, made)
	return made
}

// link returns what is known of a channel.
func (w *worker) link(id uint32) *linkContents {
	if int(id) < len(w.links) && (w.links[id].takes != nil || id == 0) {
		return &w.links[id]
	}
	return w.meetLink(id)
}

func (w *worker) meetLink(id uint32) *linkContents {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.space.channels
	l := linkContents{print: all[id].print, takes: all[id].takes}
	if len(l.takes) > 0 {
		l.first = l.takes[0]
		l.rest = all[l.first.rest].minus(l.print)
	}
	known := room(&w.links, id)
	*known = l
	return known
}

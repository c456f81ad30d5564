package check

import "github.com/conclave-io/conclave/process"

// worker finds out what may happen next in a state. What it needs for that it looks
// up in its own view of the space, which it fills as it meets what is new.
type worker struct {
	*stepper
	views    []view         // of local states, by number
	channels []channel      // by number
	puts     memo           // a channel and a message: the channel with the message
	steps    memo           // a local state and a message: a position in lists
	lists    [][]edge       // 0: none
	sent     []send         // of all edges
	stopped  [][]stop       // of all edges, by edge.stops
	extras   []extra        // of all edges, by edge.extra
	wrongs   []string       // why edges are broken
	returns  map[string]int // restarts, by local state and incarnations of the others

	visited  *visited
	believed []uint64              // who sends to whom, as bits; nil without reduction
	surprise func(p, q process.ID) // is told who does besides

	capacity    int         // how many may be inside
	overtakings int         // how often others may enter while somebody waits
	normal      *normalizer // nil: nothing is normalised

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
	own     int32  // position in lists of what may happen without a message
	crashed uint32 // the local state after a crash
	state   *local
}

// successor is a state that may come next.
type successor struct {
	print
	action action
	broken *Violation // what is wrong with it, or nil
}

// memo is a hash table from pairs of numbers to a number above 0.
type memo struct {
	keys []uint64 // 0: empty
	vals []uint32
	used int
}

func memoKey(a, b uint32) uint64 { return uint64(a)<<32 | uint64(b) }

func (m *memo) get(key uint64) uint32 {
	mask := uint64(len(m.keys) - 1)
	for i := key * 0x9e3779b97f4a7c15 >> 20 & mask; ; i = (i + 1) & mask {
		switch m.keys[i] {
		case key:
			return m.vals[i]
		case 0:
			return 0
		}
	}
}

func (m *memo) put(key uint64, val uint32) {
	if 2*m.used >= len(m.keys) {
		old := *m
		*m = newMemo(2 * len(old.keys))
		for i, k := range old.keys {
			if k != 0 {
				m.put(k, old.vals[i])
			}
		}
	}
	mask := uint64(len(m.keys) - 1)
	i := key * 0x9e3779b97f4a7c15 >> 20 & mask
	for m.keys[i] != 0 {
		i = (i + 1) & mask
	}
	m.keys[i], m.vals[i] = key, val
	m.used++
}

func newMemo(n int) memo { return memo{keys: make([]uint64, n), vals: make([]uint32, n)} }

func newWorker(sp *space) *worker {
	open, _ := sp.cfg.interests()
	w := &worker{
		open: open, unspent: 1<<budgetCount - 1,
		capacity: sp.cfg.capacity(), overtakings: sp.cfg.overtakings(),
		stepper: newStepper(sp), puts: newMemo(1 << 10), steps: newMemo(1 << 10),
		lists: make([][]edge, 1), stopped: make([][]stop, 1), extras: make([]extra, 1), returns: map[string]int{},
		channels: make([]channel, 1),
	}
	w.normal = newNormalizer(w)
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
	for int(id) >= len(w.views) {
		w.views = append(w.views, view{})
	}
	v := view{print: f, ready: true, phase: l.phase, down: l.down, asked: l.asked, state: l}
	if w.cfg.faulty() && !l.down {
		v.crashed = w.downAfter(l)
	}
	v.own = int32(w.keep(w.ownSteps(l)))
	w.views[id] = v
	return &w.views[id]
}

// ownSteps returns what may happen to a process without a message.
func (w *worker) ownSteps(l *local) []edge {
	var edges []edge
	add := func(kind actionKind, argument uint64, what func()) {
		edges = append(edges, w.edges(l, edge{kind: kind, argument: argument}, what)...)
	}
	mutex := w.cfg.family() == process.Mutex
	more := int(l.asked) < w.cfg.Entries && w.cfg.asks(l.proc)
	switch {
	case l.down:
		return nil
	case mutex && l.phase == inside:
		add(actRelease, 0, w.release)
	case mutex && l.phase == waiting && w.cfg.Cancels > 0:
		add(actCancel, 0, w.cancel)
	case mutex && l.phase == idle && more:
		add(actAcquire, 0, w.acquire)
	case !mutex && more:
		add(actCampaign, 0, w.campaign)
	}
	if w.mayNotice(l) {
		add(actNotice, uint64(l.leader), w.recall)
	}
	if w.cfg.Timing != Never {
		for _, key := range l.timers {
			add(actFire, key, func() { w.fire(key) })
		}
	}
	return edges
}

// edges takes a step in all its ways.
func (w *worker) edges(from *local, like edge, what func()) []edge {
	var edges []edge
	f := w.printOfLocal(from)
	for _, t := range w.take(from, what) {
		e := like
		e.to, e.flags, e.fence, e.choice = t.to, t.flags, t.fence, uint8(min(t.choice, 255))
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
	w.learn(from.proc, edges)
	return edges
}

func (w *worker) printOfLocal(l *local) print { return printOf(l.appendTo(nil)) }

// keep stores a list of edges and returns its position; an empty one has 0.
func (w *worker) keep(edges []edge) int {
	if len(edges) == 0 {
		return 0
	}
	w.lists = append(w.lists, edges)
	return len(w.lists) - 1
}

// deliveries returns the steps of a process that receives a message.
func (w *worker) deliveries(localID, messageID uint32) []edge {
	key := memoKey(localID, messageID)
	at := w.steps.get(key)
	if at == 0 {
		w.mu.Lock()
		l, m := w.locals[localID], w.messages[messageID]
		w.mu.Unlock()
		edges := []edge{{kind: actDeliver, to: localID}} // who is down loses it
		if !l.down {
			edges = w.edges(l, edge{kind: actDeliver}, func() { w.receive(m) })
		}
		at = uint32(w.keep(edges))
		w.steps.put(key, at)
	}
	return w.lists[at]
}

// put returns a channel after a message was sent into it.
func (w *worker) put(slot int, before, m uint32) uint32 {
	key := memoKey(before, m)
	if c := w.puts.get(key); c != 0 {
		return c
	}
	ordered := !w.cfg.Unordered && slot < w.layout.n+w.layout.links
	c := w.channelPut(before, m, ordered)
	w.puts.put(key, c)
	return c
}

// channel returns what is known of a channel.
func (w *worker) channel(id uint32) *channel {
	if int(id) >= len(w.channels) {
		w.mu.Lock()
		w.channels = append(w.channels, w.space.channels[len(w.channels):]...)
		w.mu.Unlock()
	}
	if w.channels[id].takes == nil && id != 0 {
		w.mu.Lock()
		w.channels[id] = w.space.channels[id] // it was only a part of others so far
		w.mu.Unlock()
	}
	return &w.channels[id]
}

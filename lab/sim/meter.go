package sim

import (
	"math/bits"

	"github.com/conclave-io/conclave/process"
)

// meter counts. Counters of the whole run come first, then those of the window. The
// window opens after the warm-up: when an exit completes it, or in the idle regime when
// the system is quiet after that exit. It closes in the same way.
type meter struct {
	types    [][]uint64 // messages sent, by layer and type
	protocol uint64     // of class Protocol
	inFlight [process.Recovery + 1]int
	waiting  int
	inside   int
	entered  uint64
	done     int
	refused  int
	leaders  []Leadership // by rank, nil until a leader is elected

	lastExit  process.Duration
	contended bool // a process waited at the last exit, and none has entered since

	open     bool
	from     process.Duration
	to       process.Duration
	atOpen   [][]uint64
	atClose  [][]uint64
	entries  int
	wait     histogram
	response histogram
	sync     histogram
	messages histogram
	bypass   histogram
	progress uint64 // entered, at the last check for a stall
}

func (m *meter) init(w *World) {
	w.payloads.init(w.cfg.Spec)
	for _, classes := range w.payloads.classes {
		m.types = append(m.types, make([]uint64, len(classes)))
	}
	if w.cfg.Workload.Regime == Listed && w.cfg.Limit.Warmup == 0 {
		m.openWindow(0)
	}
}

func (m *meter) openWindow(now process.Duration) {
	m.open, m.from = true, now
	m.atOpen = copyCounts(m.types)
}

func copyCounts(types [][]uint64) [][]uint64 {
	var copied [][]uint64
	for _, layer := range types {
		copied = append(copied, append([]uint64{}, layer...))
	}
	return copied
}

// sent counts a message to one process.
func (m *meter) sent(l *payload) {
	m.types[l.layer][l.kind]++
	if l.class == process.Protocol {
		m.protocol++
	}
}

// flying reports whether a message is in flight.
func (m *meter) flying() bool { return m.inFlight != [process.Recovery + 1]int{} }

func (m *meter) fly(class process.Class, by int) { m.inFlight[class] += by }

// beforeRequest opens the window of a run without warm-up at its first request.
func (m *meter) beforeRequest(w *World) {
	if !m.open && w.cfg.Limit.Warmup == 0 {
		m.openWindow(w.now)
	}
}

// enter is called before the phase of the client changes.
func (m *meter) enter(w *World, p process.ID) {
	c := &w.clients[p]
	m.waiting--
	m.inside++
	if m.open {
		m.wait.add(w.now - c.requested)
		m.messages.add(process.Duration(m.protocol - c.messages))
		m.bypass.add(process.Duration(m.entered - c.others))
		if m.contended {
			m.sync.add(w.now - m.lastExit)
		}
	}
	m.contended = false
	m.entered++
}

func (m *meter) leave(w *World, p process.ID) {
	m.inside--
	m.done++
	m.lastExit, m.contended = w.now, m.waiting > 0
	if m.open {
		m.entries++
		w.clients[p].measured++
		m.response.add(w.now - w.clients[p].requested)
	}
}

// completed is called when the step after an exit is done.
func (m *meter) completed(w *World) {
	if w.cfg.Workload.Regime != Idle {
		m.quiet(w)
	}
}

// quiet opens or closes the window when due.
func (m *meter) quiet(w *World) {
	l := &w.cfg.Limit
	if !m.open && m.done >= l.Warmup && m.done > 0 {
		m.openWindow(w.now)
	}
	if l.Entries > 0 && m.done >= l.Warmup+l.Entries {
		w.end(LimitReached)
	}
}

// close ends the window. If a run ends during its warm-up, all messages and entries
// count, and there are no delays.
func (m *meter) close(w *World) {
	if !m.open && w.reason != 0 {
		m.openWindow(0)
		for _, layer := range m.atOpen {
			clear(layer)
		}
		m.entries = m.done
	}
	m.to = w.now
	m.atClose = copyCounts(m.types)
}

func (m *meter) elected(w *World, p process.ID, e *process.Effect) {
	if m.leaders == nil {
		m.leaders = make([]Leadership, w.config.N)
		for i := range m.leaders {
			m.leaders[i] = Leadership{Process: process.ID(i), Leader: process.None}
		}
	}
	m.leaders[p] = Leadership{Process: p, Leader: e.Peer, Term: e.Term, At: w.now}
}

// stallTime is how long there may be no entry while a process waits: far longer than
// any algorithm here needs to serve every process, with all its retries.
func (w *World) stallTime() process.Duration {
	perEntry := 10*w.config.D() + w.cfg.Workload.Section.Mean() + w.cfg.Links.Delay.Mean() + w.cfg.Disk.Mean()
	return min(endOfTime/4, 100*process.Duration(w.config.N+10)*perEntry)
}

func (w *World) scheduleStallCheck() {
	w.push(w.now+w.stallTime(), classBackground, 0, itemCheckStall)
	w.background++
}

// checkStall ends a run in which, since the last check, a process waited and none
// entered.
func (w *World) checkStall() {
	w.background--
	w.events--
	since := w.now - w.stallTime()
	if w.meter.entered == w.meter.progress && w.meter.inside == 0 && w.waitsSince(since) {
		w.end(Stalled)
		return
	}
	w.meter.progress = w.meter.entered
	w.scheduleStallCheck()
}

func (w *World) waitsSince(since process.Duration) bool {
	if w.meter.waiting == 0 {
		return false
	}
	for p := range w.clients {
		if c := &w.clients[p]; c.phase == clientWaiting && c.requested <= since {
			return true
		}
	}
	return false
}

// histogram counts values in buckets whose widths are a sixteenth of their values, so
// that it has a fixed size.
type histogram struct {
	count    int
	sum      process.Duration
	min, max process.Duration
	buckets  [61 * 16]uint32
}

const subBits = 4

func (h *histogram) add(v process.Duration) {
	if h.count == 0 || v < h.min {
		h.min = v
	}
	h.max = max(h.max, v)
	h.count++
	h.sum += v
	h.buckets[bucket(v)]++
}

// bucket returns the bucket of a value: its own if the value is below 16, otherwise
// that of its leading five bits.
func bucket(v process.Duration) int {
	if v < 1<<subBits {
		return int(v)
	}
	shift := bits.Len64(uint64(v)) - subBits - 1
	return (shift+1)<<subBits + int(v>>shift)&(1<<subBits-1)
}

// floor is the smallest value of a bucket.
func floor(bucket int) process.Duration {
	if bucket < 1<<subBits {
		return process.Duration(bucket)
	}
	shift := bucket>>subBits - 1
	return process.Duration(1<<subBits+bucket&(1<<subBits-1)) << shift
}

// quantile returns the value that a share of the values, in percent, do not exceed, as
// precisely as known: the values of a bucket are assumed to be evenly distributed.
func (h *histogram) quantile(percent int) process.Duration {
	rank := (h.count*percent + 99) / 100
	for i, n := range h.buckets {
		if rank > int(n) {
			rank -= int(n)
			continue
		}
		lo, hi := max(floor(i), h.min), min(floor(i+1)-1, h.max)
		return lo + process.Duration(float64(hi-lo)*float64(rank)/float64(n))
	}
	return h.max
}

// summary returns what was counted, in the given unit.
func (h *histogram) summary(unit process.Duration) Summary {
	if h.count == 0 {
		return Summary{}
	}
	in := func(v process.Duration) float64 { return float64(v) / float64(unit) }
	return Summary{
		Count: h.count, Mean: in(h.sum) / float64(h.count), Min: in(h.min), Max: in(h.max),
		Median: in(h.quantile(50)), P99: in(h.quantile(99)),
	}
}

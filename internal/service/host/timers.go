package host

import (
	"container/heap"
	"math/bits"
	"slices"

	"github.com/conclave-io/conclave/process"
)

// timer is a timer that a machine has armed.
type timer struct {
	layer uint8 // of a stack
	id    process.Timer
	at    int64
}

// alarm is an entry in the queue of all timers. It is valid only if its instance has the timer
// armed for exactly that time. Entries of timers that were armed again or disarmed stay in the
// queue until they are due.
type alarm struct {
	timer
	in *instance
}

type alarms []alarm

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].at < a[j].at }
func (a alarms) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *alarms) Push(x any)        { *a = append(*a, x.(alarm)) }

func (a *alarms) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// arm is I8: the time is drawn from the range.
func (m *machines) arm(in *instance, e *process.Effect) {
	t := timer{e.Layer, e.Timer, m.now + int64(e.Lo) + int64(m.random.below(uint64(e.Hi-e.Lo)+1))}
	in.disarm(t.layer, t.id)
	in.timers = append(in.timers, t)
	heap.Push(&m.alarms, alarm{t, in})
}

// fire gives due timers to their machines.
func (m *machines) fire() {
	for len(m.alarms) > 0 && m.alarms[0].at <= m.now {
		a := heap.Pop(&m.alarms).(alarm)
		if a.in.epoch != m.member.Epoch || !slices.Contains(a.in.timers, a.timer) {
			continue
		}
		a.in.disarm(a.layer, a.id)
		m.event = process.Event{Kind: process.Fire, Layer: a.layer, Timer: a.id}
		m.run(a.in)
	}
}

// random is splitmix64: one word of state, the same numbers on every machine.
type random uint64

func (r *random) below(n uint64) uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	hi, _ := bits.Mul64(z^z>>31, n)
	return hi
}

// choose is the Chooser of the machines.
func (r *random) choose(n int) int { return int(r.below(uint64(n))) }

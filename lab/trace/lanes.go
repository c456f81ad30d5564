package trace

import (
	"fmt"
	"strconv"

	"github.com/conclave-io/conclave/process"
)

// lanes has the index of the lane of each process.
type lanes map[process.Label]int

func newLanes(h Header) lanes {
	l := make(lanes, len(h.Labels))
	for i, label := range h.lanes() {
		l[label] = i
	}
	return l
}

// sequence checks that the ids of records increase, and that records contain only processes that
// have a lane.
type sequence struct {
	lanes lanes
	last  uint64
}

func (s *sequence) accept(r *Record) error {
	if err := checkOrder(r, s.last); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	s.last = r.ID
	labels := []process.Label{r.Process}
	for m := range r.messages() {
		labels = append(labels, m.From)
		if m.To != nil {
			labels = append(labels, *m.To)
		}
	}
	for i := range r.Effects {
		labels = append(labels, r.Effects[i].Reached...)
	}
	for _, label := range labels {
		if _, known := s.lanes[label]; !known {
			return fmt.Errorf("trace: record %d: process %d: must be one of the header", r.ID, label)
		}
	}
	return nil
}

// messages iterates over the messages in a record.
func (r *Record) messages() func(yield func(*Message) bool) {
	return func(yield func(*Message) bool) {
		if r.Message != nil && !yield(r.Message) {
			return
		}
		for i := range r.Effects {
			if m := r.Effects[i].Message; m != nil && !yield(m) {
				return
			}
		}
	}
}

// ofNetwork reports whether a record is an event between processes. The record names a process, but
// that process does not learn of the event.
func (r *Record) ofNetwork() bool {
	switch r.Kind {
	case Drop, Duplicate, Partition, Heal:
		return true
	}
	return false
}

func (r *Record) delivers() bool {
	return r.Kind == process.Deliver.String() && r.Message != nil && r.Message.To != nil
}

func (r *Record) drops() bool {
	return r.Kind == Drop && r.Message != nil && r.Message.To != nil
}

// flight is a message on its way to one process. The field cause is the record that sent it.
type flight struct {
	cause    uint64
	from, to process.Label
	text     string
	class    string
	name     string
}

func newFlight(cause uint64, m *Message, to process.Label) flight {
	return flight{cause: cause, from: m.From, to: to, text: m.Text, class: m.Class, name: m.Name}
}

// flights knows the messages that were sent and have not arrived or been lost.
type flights struct {
	labels []process.Label
	sent   []flight
	left   map[flight]int
}

func newFlights(h Header) *flights {
	return &flights{labels: h.Labels, left: map[flight]int{}}
}

// leave records the messages that a step sends.
func (f *flights) leave(r *Record) {
	for i := range r.Effects {
		e := &r.Effects[i]
		sends := e.Kind == process.EffectSend.String() || e.Kind == process.EffectBroadcast.String()
		if e.Internal || e.Message == nil || !sends {
			continue
		}
		for _, to := range e.receivers(f.labels) {
			sent := newFlight(r.ID, e.Message, to)
			f.sent = append(f.sent, sent)
			f.left[sent]++
		}
	}
}

// receivers returns the processes to which the message of an effect was sent.
func (e *Effect) receivers(all []process.Label) []process.Label {
	switch {
	case e.Cut:
		return e.Reached
	case e.Message.To != nil:
		return []process.Label{*e.Message.To}
	}
	var others []process.Label
	for _, label := range all {
		if label != e.Message.From {
			others = append(others, label)
		}
	}
	return others
}

// land records that a message arrived or was lost. It reports whether this is a copy in addition to
// those that were sent.
func (f *flights) land(arrived flight) (copied bool) {
	if f.left[arrived] == 0 {
		return true
	}
	f.left[arrived]--
	return false
}

// pending returns the messages that have neither arrived nor been lost, in the order in which they
// were sent.
func (f *flights) pending() []flight {
	var pending []flight
	for _, sent := range f.sent {
		if f.left[sent] > 0 {
			f.left[sent]--
			pending = append(pending, sent)
		}
	}
	return pending
}

// news returns the other parts of a record that readers want to see in a picture. Messages, timers
// and critical sections have their own marks.
func (r *Record) news() []string {
	var news []string
	switch r.Kind {
	case process.Suspect.String(), process.Trust.String(), process.Fail.String(), process.Rejoin.String(),
		process.Neighbor.String(), process.Leave.String(), process.Elected.String(), process.Decided.String(),
		process.Acquire.String(), process.Cancel.String(), process.Campaign.String(), process.Resign.String(),
		process.Propose.String(), process.Restart.String(), Crash, Pause, Resume, Jump, Corrupt:
		news = append(news, r.headline())
	}
	if r.Note != "" && !r.ofNetwork() {
		news = append(news, r.Note)
	}
	for i := range r.Effects {
		if e := &r.Effects[i]; e.seen() && e.newsworthy() {
			news = append(news, e.text(r.Process))
		}
	}
	return news
}

// seen reports whether an effect left its process. Effects for another layer do not, and neither do
// effects that a crash prevented.
func (e *Effect) seen() bool { return !e.Internal && !e.Cut }

func (e *Effect) newsworthy() bool {
	switch process.EffectKindByName(e.Kind) {
	case process.EffectDeny, process.EffectRevoke, process.EffectElect, process.EffectSuspect, process.EffectTrust,
		process.EffectFail, process.EffectRejoin, process.EffectDeliver, process.EffectDecide:
		return true
	}
	return false
}

// grant returns the fence with which a step lets its client enter.
func (r *Record) grant() (fence string, granted bool) {
	for i := range r.Effects {
		if e := &r.Effects[i]; e.seen() && e.Kind == process.EffectGrant.String() {
			return e.Fence, true
		}
	}
	return "", false
}

// has reports whether a step has an effect of a kind.
func (r *Record) has(kind process.EffectKind) bool {
	for i := range r.Effects {
		if e := &r.Effects[i]; e.seen() && e.Kind == kind.String() {
			return true
		}
	}
	return false
}

// phase is the state of a client with respect to its critical section.
type phase uint8

const (
	away phase = iota
	waiting
	inside
)

// after returns the phase after a record of the same process. A request that a host refused also
// has a record, which does not change the phase.
func (p phase) after(r *Record) phase {
	_, granted := r.grant()
	switch {
	case r.Kind == Crash, r.has(process.EffectRevoke):
		return away
	case granted:
		return inside
	case p == away && r.Kind == process.Acquire.String():
		return waiting
	case p == waiting && r.Kind == process.Cancel.String(), p == inside && r.Kind == process.Release.String():
		return away
	}
	return p
}

func text(l process.Label) string { return strconv.FormatUint(uint64(l), 10) }

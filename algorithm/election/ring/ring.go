// Package ring passes the messages of an election along a ring, skipping processes that
// are down.
//
// The order of the ring is that of process.Topology. A message goes to the next process
// and is acknowledged. A process that does not acknowledge in time is passed over, and
// so on until one does. This is what the documents mean by "if no response is received,
// to the next successor" ([D0]) and "finds the next alive node" ([D3]).
//
// A message on a ring has an end, the process that removes it: the starter of an
// election, or the owner of a label. If a sender would have to pass over the end, no
// process would ever stop the message. So it is not sent, and the sender is told.
//
// A machine forwards before it acknowledges. So a process that crashes between the two
// leaves a duplicate, which elections tolerate, and never a gap.
//
// A silent process is remembered as silent until another process starts an election or
// a message shows that it is up. So an election waits for each crashed process once. A
// process that a detector below declared failed is remembered until it is back.
package ring

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// AckTimeout is the time, in D, to wait for an acknowledgement: a round trip, and the
// time to process a message.
const AckTimeout = 3

// Hand is how a machine passes messages on. It is configuration.
type Hand struct {
	Config *process.Config
	Self   process.ID
	Ack    process.Type
	Timer  process.Timer // Timer.For(p) runs while p owes an acknowledgement
}

// Box is what a machine keeps of the messages that it has passed on.
type Box struct {
	Parcels []Parcel     // not acknowledged yet, in the order of sending
	Silent  []process.ID // those that have not acknowledged, rising
	Failed  []process.ID // those that a detector declared failed, rising
}

// Parcel is a message that waits for its acknowledgement, and its end.
type Parcel struct {
	Message process.Message
	End     process.ID
}

// AckFields are what an acknowledgement carries: which message it is for.
func AckFields(names ...string) []process.FieldUse {
	return []process.FieldUse{
		{Field: process.FieldValue, Symbol: "of", Names: append([]string{""}, names...)},
		{Field: process.FieldSubject, Symbol: "end"},
		{Field: process.FieldTerm, Symbol: "round"},
	}
}

// Pass sends a message to the next process that is not known to be down. It
// reports whether there is one before the end of the message.
func (b *Box) Pass(h *Hand, msg process.Message, end process.ID, fx *process.Effects) bool {
	to := b.next(h, end)
	if to == process.None {
		return false
	}
	b.Parcels = append(b.Parcels, Parcel{End: end})
	kept := &b.Parcels[len(b.Parcels)-1].Message
	kept.CopyFrom(&msg)
	kept.From, kept.To = h.Self, to
	fx.Send(to, msg)
	fx.Arm(h.Timer.For(to), AckTimeout*h.Config.D(), AckTimeout*h.Config.D())
	return true
}

// next returns the first process behind this one that is not down, unless it lies
// behind the end.
func (b *Box) next(h *Hand, end process.ID) process.ID {
	t := &h.Config.Topology
	for p := t.Next(h.Self, h.Config.N); p != h.Self; p = t.Next(p, h.Config.N) {
		if !b.Down(p) {
			return p
		}
		if p == end {
			return process.None
		}
	}
	return process.None
}

// Acknowledge answers a message. Call it after sending what follows from the message.
func (b *Box) Acknowledge(h *Hand, msg *process.Message, end process.ID, fx *process.Effects) {
	fx.Send(msg.From, process.Message{Type: h.Ack, Value: int64(msg.Type), Subject: end, Term: msg.Term})
}

// OnAck handles an acknowledgement.
func (b *Box) OnAck(h *Hand, ack *process.Message, fx *process.Effects) {
	b.Parcels = slices.DeleteFunc(b.Parcels, func(p Parcel) bool {
		m := &p.Message
		return m.To == ack.From && int64(m.Type) == ack.Value && m.Term == ack.Term && p.End == ack.Subject
	})
	if !b.owes(ack.From) {
		fx.Disarm(h.Timer.For(ack.From))
	}
}

// owes reports whether p has messages to acknowledge.
func (b *Box) owes(p process.ID) bool {
	return slices.ContainsFunc(b.Parcels, func(q Parcel) bool { return q.Message.To == p })
}

// Loss is what was in flight to a process that turned out to be down.
type Loss struct {
	Peer  process.ID
	Sent  []Parcel // all that it did not acknowledge
	Stuck []Parcel // of these, what cannot be passed to another process
}

// OnSilence passes over p, which has not answered in time.
func (b *Box) OnSilence(h *Hand, p process.ID, fx *process.Effects) Loss {
	b.Silent = process.Insert(b.Silent, p)
	return b.again(h, p, fx)
}

// OnFail is OnSilence for a report of a detector.
func (b *Box) OnFail(h *Hand, p process.ID, fx *process.Effects) Loss {
	b.Failed = process.Insert(b.Failed, p)
	if b.owes(p) {
		fx.Disarm(h.Timer.For(p))
	}
	return b.again(h, p, fx)
}

// again sends what p did not acknowledge to the next process, in the same order.
func (b *Box) again(h *Hand, p process.ID, fx *process.Effects) Loss {
	loss := Loss{Peer: p}
	var rest []Parcel
	for _, q := range b.Parcels {
		if q.Message.To == p {
			loss.Sent = append(loss.Sent, q)
		} else {
			rest = append(rest, q)
		}
	}
	b.Parcels = rest
	for _, q := range loss.Sent {
		if !b.Pass(h, q.Message, q.End, fx) {
			loss.Stuck = append(loss.Stuck, q)
		}
	}
	return loss
}

// Heard notes that p is alive.
func (b *Box) Heard(p process.ID) {
	b.Silent, b.Failed = process.Remove(b.Silent, p), process.Remove(b.Failed, p)
}

// Met notes that a message has come, and that its end was up recently: it may have come
// back since it was silent.
func (b *Box) Met(from, end process.ID) {
	b.Heard(from)
	b.Silent = process.Remove(b.Silent, end)
}

// OnRejoin sends p again what it had not acknowledged when it crashed. Otherwise p
// would be treated as silent because of a message that went to its earlier incarnation.
func (b *Box) OnRejoin(h *Hand, p process.ID, fx *process.Effects) {
	b.Heard(p)
	for i := range b.Parcels {
		if b.Parcels[i].Message.To == p {
			fx.Send(p, b.Parcels[i].Message)
		}
	}
	if b.owes(p) {
		fx.Arm(h.Timer.For(p), AckTimeout*h.Config.D(), AckTimeout*h.Config.D())
	}
}

// Down reports whether p is passed over.
func (b *Box) Down(p process.ID) bool {
	return slices.Contains(b.Silent, p) || slices.Contains(b.Failed, p)
}

// Renew is for an election that another process has started: silent processes are asked
// again.
func (b *Box) Renew() { b.Silent = b.Silent[:0] }

// Fields names the state.
func (b *Box) Fields(f *process.Fields) {
	process.List(f, "unacknowledged", &b.Parcels, parcelFields)
	f.IDs("silent", &b.Silent)
	f.IDs("failed", &b.Failed)
}

func parcelFields(f *process.Fields, p *Parcel) {
	f.Message("message", &p.Message)
	f.ID("end", &p.End)
}

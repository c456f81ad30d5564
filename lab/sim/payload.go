package sim

import "github.com/conclave-io/conclave/process"

// payload is a message in flight, stored once for all receivers of a broadcast. It has
// no pointers, so that the garbage collector need not scan it; rare parts are stored
// elsewhere. Its 64 bytes are one cache line: with a million messages in flight,
// loading that line is the largest cost of a delivery.
type payload struct {
	subject process.ID
	from    process.ID
	term    process.Term
	seq     uint64
	clock   uint64
	fence   process.Fence
	value   int64

	incarnation uint32 // of the sender
	refs        int32  // 0 or less: free, and the next free one is at -refs
	extra       int32  // position in extras, 0: none
	kind        process.Type
	layer       uint8
	class       process.Class
	void        bool // its sender crashed before its disk was done
}

// extra is the rest of a message: its lists, and what ghosts carry.
type extra struct {
	vector []uint64
	ids    []process.ID
	data   []byte

	departs    process.Duration // when the disk is done, if that is later than the step
	ghost      []uint64
	ghostFence process.Fence
	free       int32
}

// payloads is a pool. Position 0 of both lists is not used.
type payloads struct {
	list      []payload
	free      int32
	extras    []extra
	freeExtra int32
	classes   [][]process.Class // by layer and type
	looked    int32             // not used otherwise: see warm
}

func (ps *payloads) init(spec *process.Spec) {
	for _, l := range spec.All() {
		classes := make([]process.Class, len(l.Messages)+1)
		for i := range l.Messages {
			classes[i+1] = l.Messages[i].Class
		}
		ps.classes = append(ps.classes, classes)
	}
	ps.list, ps.extras = make([]payload, 1), make([]extra, 1)
}

// add copies a message and returns its position.
func (ps *payloads) add(m *process.Message, refs int32) int32 {
	pl := ps.free
	if pl != 0 {
		ps.free = -ps.list[pl].refs
	} else {
		pl = int32(len(ps.list))
		ps.list = append(ps.list, payload{})
	}
	ps.list[pl] = payload{
		subject: m.Subject, from: m.From, term: m.Term, seq: m.Seq, clock: m.Clock,
		fence: m.Fence, value: m.Value, kind: m.Type, layer: m.Layer,
		class: ps.classes[m.Layer][m.Type], refs: refs,
	}
	if len(m.Vector)+len(m.IDs)+len(m.Data) > 0 {
		x := ps.extraOf(pl)
		x.vector = append(x.vector, m.Vector...)
		x.ids = append(x.ids, m.IDs...)
		x.data = append(x.data, m.Data...)
	}
	return pl
}

// extraOf returns the extra of a payload, and makes one if it has none.
func (ps *payloads) extraOf(pl int32) *extra {
	l := &ps.list[pl]
	if l.extra == 0 {
		if l.extra = ps.freeExtra; l.extra != 0 {
			ps.freeExtra = ps.extras[l.extra].free
		} else {
			l.extra = int32(len(ps.extras))
			ps.extras = append(ps.extras, extra{})
		}
	}
	return &ps.extras[l.extra]
}

// fill makes m the message of a payload, as its receiver sees it. The slices are
// lent until the payload is dropped.
func (ps *payloads) fill(pl int32, to process.ID, m *process.Message) {
	l := &ps.list[pl]
	*m = process.Message{
		Type: l.kind, Layer: l.layer, From: l.from, To: to, Subject: l.subject, Term: l.term,
		Seq: l.seq, Clock: l.clock, Fence: l.fence, Value: l.value,
	}
	if l.extra != 0 {
		x := &ps.extras[l.extra]
		m.Vector, m.IDs, m.Data = x.vector, x.ids, x.data
	}
}

// drop releases one reference.
func (ps *payloads) drop(pl int32) {
	l := &ps.list[pl]
	if l.refs--; l.refs > 0 {
		return
	}
	if l.extra != 0 {
		x := &ps.extras[l.extra]
		x.vector, x.ids, x.data, x.ghost = x.vector[:0], x.ids[:0], x.data[:0], x.ghost[:0]
		x.departs = 0
		x.free, ps.freeExtra = ps.freeExtra, l.extra
	}
	l.refs, ps.free = -ps.free, pl
}

// warm touches the payload of a message that arrives soon. With a million messages in
// flight it is in no cache. Touching many together loads them in parallel, so that they
// are in the cache when they are needed one by one.
func (w *World) warm(it *item) {
	if it.kind == itemDelivery {
		w.payloads.looked += w.payloads.list[it.arg].refs
	}
}

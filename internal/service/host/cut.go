package host

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm/globalstate"
	"github.com/conclave-io/conclave/process"
)

// The bounds of a cut: names and, for each server, bytes of states and as many bytes of messages
// in transit to it.
const (
	maxCutNames = 1000
	maxCutBytes = 256 << 10
)

// The reasons why there is no cut.
var (
	// ErrOut: this server takes no part in the view.
	ErrOut = errors.New("host: this server takes no part in the view")
	// ErrEpochOver: another epoch has begun meanwhile. The caller can try again.
	ErrEpochOver = errors.New("host: another epoch began before the cut was complete")
)

// CutSizeError means that a cut is too large.
type CutSizeError struct{ Prefix string }

func (e *CutSizeError) Error() string {
	return fmt.Sprintf("more than %d locks start with %q, or too much is on its way between their machines; use a longer prefix", maxCutNames, e.Prefix)
}

// The messages of the recorder that a host reads.
var (
	cutCarry    = cutType("CARRY")
	cutMarker   = cutType("MARKER")
	cutPart     = cutType("PART")
	cutRecorded = cutType("RECORDED")
)

func cutType(name string) process.Type {
	i := slices.IndexFunc(globalstate.Spec.Messages, func(m process.MessageSpec) bool { return m.Name == name })
	return process.Type(i + 1)
}

// What is recorded beside the recorder: a frame, or a note that there were too many.
const (
	carriedFrame process.Type = iota + 1
	carriedTooMuch
)

// recorder records cuts in one epoch. The machine of algorithm/globalstate decides when to record
// what, and which messages are in transit. It needs links that preserve order and neither lose
// nor repeat messages. The links of an epoch do that (L1, L3), over any number of lanes. The
// state that it records for a member are the machines of names, as one layer above it.
type recorder struct {
	*self
	machines *machines
	links    *links
	home     *home

	recordings
	number uint64 // of the newest cut that this server asked for
	ends   []CutEnd
	body   []byte
}

// recordings is the state of a recorder in one epoch.
type recordings struct {
	machine process.Machine // nil: there has been no cut in this epoch
	codec   *process.Codec
	config  process.Config
	message process.Message
	fx      process.Effects
	census  census
	open    []recording // under way at this member
	bytes   int         // of the frames recorded since no recording was under way
	asked   *asked      // the cut that this server asked for, or nil
}

// recording is a cut for which this member has recorded its state. Frames are recorded until the
// markers of all other members have come.
type recording struct {
	asker  process.ID
	number uint64
	prefix string
	over   bool // too many bytes were in transit
}

// asked is a cut that still lacks parts.
type asked struct {
	number  uint64 // for the caller
	seq     uint64 // of those that this member asked for in the epoch
	prefix  string
	parts   [][]byte // by rank
	missing int
}

// CutEnd is the result of a cut.
type CutEnd struct {
	Number uint64
	Cut    *Cut
	Err    error
}

// Cut asks for a consistent cut of the machines of the names under a prefix. Output reports the
// result with the number. If Cut is called again before that, the first cut is abandoned.
func (h *Host) Cut(now int64, prefix string) (number uint64, err error) {
	defer h.guard()
	if h.output.Err != nil {
		return 0, h.output.Err
	}
	h.begin(now)
	if h.member.Rank() == process.None {
		return 0, ErrOut
	}
	h.cuts.start(prefix)
	h.finish()
	return h.cuts.number, nil
}

// start asks for a cut.
func (r *recorder) start(prefix string) {
	r.number++
	r.begin()
	r.asked = &asked{number: r.number, prefix: prefix, parts: make([][]byte, r.config.N), missing: r.config.N}
	r.takeCensus(prefix)
	r.record(&process.Event{Kind: process.Record}, prefix)
}

// begin makes the machine of the epoch, if there is none.
func (r *recorder) begin() {
	if r.machine != nil {
		return
	}
	r.config = process.Config{N: len(r.member.Members)}
	r.codec = process.NewCodec(globalstate.Spec, r.config.N)
	r.machine = globalstate.Spec.New(r.member.Rank(), &r.config)
	r.machine.(process.Observer).Observe([]process.Machine{&r.census})
}

// abandon abandons all recordings, because the epoch is over.
func (r *recorder) abandon() {
	if a := r.asked; a != nil {
		r.ends = append(r.ends, CutEnd{Number: a.number, Err: ErrEpochOver})
	}
	r.recordings = recordings{}
}

// record gives the recorder an event, which may start a recording of the names under the prefix,
// and carries out its effects. Nothing else is sent between recording the state and sending
// the marker.
func (r *recorder) record(ev *process.Event, prefix string) {
	r.fx.Begin(r.member.Rank(), nil)
	r.machine.Step(ev, &r.fx)
	for i := range r.fx.Len() {
		e := r.fx.At(i)
		switch e.Kind {
		case process.EffectSend:
			r.post(r.fx.Message(e), prefix)
		case process.EffectBroadcast:
			m := *r.fx.Message(e)
			for to := range process.ID(r.config.N) {
				if m.To = to; to != m.From {
					r.post(&m, prefix)
				}
			}
		case process.EffectDeliver:
			r.recorded(r.fx.Message(e), prefix)
		}
	}
}

// post sends a message of the recorder.
func (r *recorder) post(m *process.Message, prefix string) {
	if m.Type == cutPart {
		r.end(m)
	}
	r.body = r.codec.Append(r.body[:0], m)
	r.links.send(m.To, &frame{kind: frameCut, name: []byte(prefix), message: r.body})
}

// recorded handles a report of the recorder: a state was recorded here, or a part has come.
func (r *recorder) recorded(m *process.Message, prefix string) {
	switch {
	case m.Layer != 0: // a frame, which the host passes to its machine
	case m.Type == cutRecorded:
		r.open = append(r.open, recording{m.Subject, m.Seq, prefix, false})
		if m.Subject == r.member.Rank() {
			r.asked.seq = m.Seq
		}
	case m.Type == cutPart:
		if m.From == r.member.Rank() {
			r.end(m)
		}
		r.collect(m)
	}
}

// end notes that all messages in transit to this member have come.
func (r *recorder) end(part *process.Message) {
	r.open = slices.DeleteFunc(r.open, func(x recording) bool { return x.asker == part.Subject && x.number == part.Seq })
	if len(r.open) == 0 {
		r.bytes = 0
	}
}

// receive receives a message for the recorder from a member.
func (r *recorder) receive(from process.ID, f *frame) error {
	r.begin()
	m := &r.message
	if err := r.codec.Decode(f.message, m); err != nil {
		return err
	}
	if m.From != from || m.To != r.member.Rank() || m.Type == cutCarry || m.Type == cutRecorded {
		return fmt.Errorf("host: a message of type %d from %d to %d for a cut comes from %d to %d", m.Type, m.From, m.To, from, r.member.Rank())
	}
	prefix := string(f.name)
	if m.Type == cutMarker && !slices.ContainsFunc(r.open, func(x recording) bool { return x.asker == m.Subject && x.number == m.Seq }) {
		if m.Subject == process.None || m.Subject == r.member.Rank() {
			return fmt.Errorf("host: a marker of cut %d, which rank %d has not asked for", m.Seq, m.Subject)
		}
		r.takeCensus(prefix)
	}
	r.record(&process.Event{Kind: process.Deliver, Message: m}, prefix)
	return nil
}

// pass shows the recorder a frame for the machine of a name, before the machine gets it. If too
// much was recorded, it reports that to all recordings under way instead.
func (r *recorder) pass(from process.ID, data []byte, name string) {
	if !slices.ContainsFunc(r.open, func(x recording) bool { return !x.over && strings.HasPrefix(name, x.prefix) }) {
		return
	}
	inner := process.Message{Layer: 1, Type: carriedFrame, From: from, To: r.member.Rank(), Data: data}
	if r.bytes += len(data); r.bytes > maxCutBytes {
		inner.Type, inner.Data = carriedTooMuch, nil
		for i := range r.open {
			r.open[i].over = true
		}
	}
	carry := process.Message{Type: cutCarry, From: from, To: inner.To, Data: inner.AppendRaw(nil)}
	r.record(&process.Event{Kind: process.Deliver, Message: &carry}, "")
}

// census is the layer above the recorder: the machines under a prefix at one member, as last
// counted.
type census struct {
	list []counted
	more bool // there are more than a cut may have
}

// counted is a name for which a member has a machine, or which is held or waited for there.
type counted struct {
	name, holder []byte
	made         bool
	state        []byte // of the machine, if there is one
}

// Step is never called: the host steps the machines.
func (*census) Step(*process.Event, *process.Effects) {}

// Fields lists the counted names.
func (c *census) Fields(f *process.Fields) {
	process.List(f, "names", &c.list, func(f *process.Fields, n *counted) {
		f.Bytes("name", &n.name)
		f.Bytes("holder", &n.holder)
		f.Bool("made", &n.made)
		f.Bytes("state", &n.state)
	})
	f.Bool("more", &c.more)
}

// takeCensus counts the names under a prefix. If there are too many it reads none of them: there
// may be many more, and the host does nothing else meanwhile.
func (r *recorder) takeCensus(prefix string) {
	found := 0
	names := slices.Sorted(only(maps.Keys(r.machines.names), func(name string) bool {
		if found > maxCutNames || !strings.HasPrefix(name, prefix) || !r.belongs(name) {
			return false
		}
		found++
		return true
	}))
	if r.census = (census{more: found > maxCutNames}); r.census.more {
		return
	}
	bytes := 0
	for _, name := range names {
		in := r.machines.names[name]
		n := counted{name: []byte(name), holder: r.holder(name), made: r.machines.made(in)}
		if n.made {
			n.state = process.AppendState(nil, in.machine)
		}
		if bytes += len(n.name) + len(n.state); bytes > maxCutBytes {
			r.census = census{more: true}
			return
		}
		r.census.list = append(r.census.list, n)
	}
}

// only returns the wanted elements of a sequence.
func only[E any](all iter.Seq[E], wanted func(E) bool) iter.Seq[E] {
	return func(yield func(E) bool) {
		all(func(e E) bool { return !wanted(e) || yield(e) })
	}
}

// belongs reports whether a name belongs to a cut: an algorithm guards it, and it has a
// machine here, or is held or waited for.
func (r *recorder) belongs(name string) bool {
	in := r.machines.names[name]
	return r.machines.prefixOf(name) != nil && (r.machines.made(in) || in.state.Held || in.state.Wanted)
}

// holder returns the session that holds a name here, or nothing.
func (r *recorder) holder(name string) []byte {
	if res, known, _ := r.home.explain(name, 0); known && len(res.Holders) > 0 {
		return res.Holders[0].Session[:]
	}
	return nil
}

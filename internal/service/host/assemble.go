package host

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm/globalstate"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// Cut is a consistent cut through the machines of names and the messages between them, in one
// epoch: a state that the run could have been in.
type Cut struct {
	Epoch   uint64
	Members []uint64 // by rank
	Names   []CutName
}

// CutName is the part of a cut about one name.
type CutName struct {
	Name, Algorithm string
	Machines        []CutMachine // by rank
	Messages        []CutMessage // in transit, by sender, then by receiver, in order
	// Tokens is the number of tokens in machines and messages, if OneToken is set: the
	// algorithm then promises a single token and never copies it.
	OneToken bool
	Tokens   int
	// Wrong says how the algorithm's invariant is broken, or is empty.
	Wrong string
}

// CutMachine is the machine of one member.
type CutMachine struct {
	Server uint64
	// Made is false if the member has no machine yet: it is in its initial state.
	Made   bool
	State  []process.FieldView
	Holder registry.SessionID // of a client that holds the name there, or all zeros
}

// CutMessage is a message in transit between two servers.
type CutMessage struct {
	From, To uint64
	Text     string
}

// collect takes the part of a member. When all parts have come, the cut is complete.
func (r *recorder) collect(m *process.Message) {
	a := r.asked
	if a == nil || m.Subject != r.member.Rank() || m.Seq != a.seq || a.parts[m.From] != nil {
		return
	}
	a.parts[m.From] = append([]byte{}, m.Data...)
	if a.missing--; a.missing > 0 {
		return
	}
	r.asked = nil
	cut, err := r.assemble(a)
	r.ends = append(r.ends, CutEnd{a.number, cut, err})
}

// draft collects what the parts say about one name.
type draft struct {
	counted  []*counted // by rank
	messages []process.Message
}

// assemble makes a cut from its parts.
func (r *recorder) assemble(a *asked) (*Cut, error) {
	n := len(a.parts)
	drafts := make(map[string]*draft)
	of := func(name string) *draft {
		if drafts[name] == nil {
			drafts[name] = &draft{counted: make([]*counted, n)}
		}
		return drafts[name]
	}
	for rank, data := range a.parts {
		if err := r.read(a.prefix, process.ID(rank), data, of); err != nil {
			return nil, err
		}
	}
	if len(drafts) > maxCutNames {
		return nil, &CutSizeError{a.prefix}
	}
	cut := &Cut{Epoch: r.member.Epoch}
	config := process.Config{N: n}
	for _, m := range r.member.Members {
		cut.Members = append(cut.Members, m.Server)
		config.Labels = append(config.Labels, process.Label(m.Server))
	}
	for _, name := range slices.Sorted(maps.Keys(drafts)) {
		one, err := r.judge(name, drafts[name], cut.Members, config.Labels)
		if err != nil {
			return nil, err
		}
		cut.Names = append(cut.Names, one)
	}
	return cut, nil
}

// read decodes the part of a member.
func (r *recorder) read(prefix string, rank process.ID, data []byte, of func(name string) *draft) error {
	n := len(r.member.Members)
	var c census
	part, err := globalstate.DecodePart(data, rank, n)
	if err == nil && len(part.States) != 1 {
		err = fmt.Errorf("%d layers", len(part.States))
	}
	if err == nil {
		err = process.DecodeState(part.States[0], &c, n)
	}
	if err != nil {
		return fmt.Errorf("host: part of a cut from server %d: %w", r.member.Members[rank].Server, err)
	}
	if c.more {
		return &CutSizeError{prefix}
	}
	for i := range c.list {
		of(string(c.list[i].name)).counted[rank] = &c.list[i]
	}
	for i := range part.Received {
		in := &part.Received[i]
		if in.Type == carriedTooMuch {
			return &CutSizeError{prefix}
		}
		f, err := decodeFrame(in.Data)
		if err != nil {
			return err
		}
		name := string(f.name)
		if s := r.machines.prefixOf(name); s != nil && strings.HasPrefix(name, prefix) && f.kind == frameLock {
			var m process.Message
			if err := s.codec.Decode(f.message, &m); err != nil {
				return err
			}
			of(name).messages = append(of(name).messages, m)
		}
	}
	return nil
}

// judge completes what the parts say about a name, and checks the invariant.
func (r *recorder) judge(name string, d *draft, servers []uint64, labels []process.Label) (CutName, error) {
	s := r.machines.prefixOf(name)
	if s == nil {
		return CutName{}, fmt.Errorf("host: part of a cut: no algorithm guards %q in epoch %d", name, r.member.Epoch)
	}
	config := *s.config(name)
	config.Labels = labels
	one := CutName{Name: name, Algorithm: s.spec.Name}
	state := process.Global{Config: &config}
	for rank, c := range d.counted {
		m, shown, err := r.rebuild(s, process.ID(rank), &config, c)
		if err != nil {
			return CutName{}, err
		}
		shown.Server = servers[rank]
		one.Machines, state.Machines = append(one.Machines, shown), append(state.Machines, m)
	}
	slices.SortStableFunc(d.messages, func(a, b process.Message) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	for i := range d.messages {
		m := &d.messages[i]
		state.Messages = append(state.Messages, m)
		one.Messages = append(one.Messages, CutMessage{servers[m.From], servers[m.To], s.spec.MessageText(m, &config)})
	}
	one.Tokens, one.OneToken = property.Tokens(s.spec, &state)
	if s.spec.Invariant != nil {
		one.Wrong = s.spec.Invariant.Wrong(&state)
	}
	return one, nil
}

// rebuild returns the machine of a member, as recorded or in its initial state.
func (r *recorder) rebuild(s *guardedPrefix, rank process.ID, config *process.Config, c *counted) (process.Machine, CutMachine, error) {
	m, shown := s.spec.New(rank, config), CutMachine{}
	if c != nil {
		shown.Made = c.made
		copy(shown.Holder[:], c.holder)
	}
	if shown.Made {
		if err := process.DecodeState(c.state, m, config.N); err != nil {
			return nil, shown, fmt.Errorf("host: part of a cut from server %d: %q: %w", r.member.Members[rank].Server, c.name, err)
		}
	} else {
		var fx process.Effects
		fx.Begin(rank, nil)
		m.Step(&process.Event{Kind: process.Start, Incarnation: 1, Now: process.Duration(r.now)}, &fx)
	}
	shown.State = process.View(m, config)
	return m, shown, nil
}

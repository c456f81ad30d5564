package process

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Family is what an algorithm is for.
type Family uint8

// The families.
const (
	Mutex Family = iota + 1
	Election
	Detector
	ClockSync
	Multicast
	GlobalState
	Agreement
	Deadlock
	Transaction // atomic commitment
	Composed    // a stack
)

var familyNames = [...]string{"", "mutex", "election", "detector", "clock", "multicast", "globalstate", "agreement", "deadlock", "transaction", "composed"}

// String returns the name of the family, which is also that of its folder.
func (f Family) String() string { return familyNames[f] }

// Locks reports whether clients ask to enter and leave again.
func (f Family) Locks() bool { return f == Mutex || f == Deadlock }

// Spec is everything that is known about an algorithm: what it is, what its messages
// mean, what it needs, what it promises, and how to make a machine. Specs are data and
// must not be modified.
type Spec struct {
	Name      string   // on the command line: lower case, words joined by hyphens
	Title     string   // as in a heading
	Paper     string   // authors, title, year
	Documents []string // lecture documents that describe or name it, such as "[D4]": see docs/references.md
	Family    Family

	Messages []MessageSpec // by Type, from 1
	Timers   []string      // names by Timer, from 1
	Rules    []RuleSpec    // by Rule, from 1
	State    []StateSpec   // what the fields of the machine mean; nil: not said
	Options  []Option

	Needs  Needs
	Claims Claims

	// Cancels says that the machine has a rule for Cancel. For other machines a
	// host waits for the grant and releases it at once.
	Cancels bool
	// Carrier says that the machine transports the messages of layers above it.
	Carrier bool
	// Layers are the specs of a stack, bottom first; nil for a single machine.
	Layers []*Spec

	// Normal says which numbers a host that compares states may normalise; nil: none.
	Normal *Normal
	// Invariant is what holds in every state; nil: nothing is promised. The
	// invariant of a layer is not judged in a stack.
	Invariant *Invariant

	// Values are the names of the values that may be proposed, from 0; nil: any number
	// may be.
	Values []string
	// Lies returns what a Byzantine process may send in place of a message: lists
	// of messages to the same receiver. Together with silence they must cover
	// everything that can make a difference to the receiver. Nil: no process may be
	// Byzantine.
	Lies func(c *Config, traitors []ID, m *Message) [][]Message
	// Waits returns which processes each process waits for in a state of the whole
	// system, by rank. Hosts compare declared deadlocks with it; nil if the
	// algorithm declares none.
	Waits func(g *Global) []Wait

	// Corruption is what a transient fault may leave. The algorithm returns from it
	// to states in which its Invariant holds. Nil: it does not.
	Corruption *Corruption

	// Check says what is wrong with a configuration in ways that Needs and Options
	// cannot express, such as options that contradict each other; nil if there is
	// nothing to check.
	Check func(c *Config) error

	// New makes the machine of one process. The configuration has passed
	// Validate and is shared: the machine keeps the pointer.
	New func(self ID, c *Config) Machine
}

// MessageSpec declares one type of message.
type MessageSpec struct {
	Name   string // as in the paper, in capitals
	Class  Class
	Part   Part       // in a wait
	Fields []FieldUse // in the order in which they are printed
}

// Part is what a message means for a process that waits for another one. Tools that show
// who waits for whom read it. They guess if no message of an algorithm has a part.
type Part uint8

// The parts of messages.
const (
	NoPart  Part = iota
	Asks         // from then on, the sender waits for the receiver
	Answers      // the receiver has what it waited for, and no longer waits for the sender
)

var partNames = [...]string{"", "asks", "answers"}

// String returns the name of the part.
func (p Part) String() string { return partNames[p] }

// FieldSet returns the declared fields.
func (m *MessageSpec) FieldSet() FieldSet {
	var s FieldSet
	for _, use := range m.Fields {
		s = s.With(use.Field)
	}
	return s
}

// Class says how a message is counted.
type Class uint8

// The classes of messages.
const (
	Protocol        Class = iota // counted in messages per entry or per election
	Acknowledgement              // of the link layer or of a token
	Heartbeat                    // of a failure detector
	Recovery                     // after a crash
)

var classNames = [...]string{"protocol", "acknowledgement", "heartbeat", "recovery"}

// String returns the name of the class.
func (c Class) String() string { return classNames[c] }

// FieldUse declares that a message uses a field.
type FieldUse struct {
	Field  Field
	Symbol string   // what the paper calls it
	Names  []string // FieldValue: what the numbers stand for; nil: numbers
	// Carried: FieldData holds a message of a layer above (see AppendRaw).
	Carried bool
}

// RuleSpec is one rule of the algorithm.
type RuleSpec struct {
	Name string // short, such as "R2a"
	Text string // the rule in one line
}

// StateSpec says what a field of the machine means.
type StateSpec struct {
	Name string // as in Machine.Fields
	Text string // in one line
}

// Option is a setting of the algorithm.
type Option struct {
	Name    string
	Default string
	Values  []string // allowed values; nil: a number from Min to Max
	Min     int
	Max     int
	Text    string // its effect, in one line
}

// Message returns the declaration of a message type of a layer, or nil.
func (s *Spec) Message(layer uint8, t Type) *MessageSpec {
	l := s.Layer(layer)
	if l == nil || t == 0 || int(t) > len(l.Messages) {
		return nil
	}
	return &l.Messages[t-1]
}

// Layer returns the spec of one layer of a stack, which for a single machine is
// itself as layer 0, or nil.
func (s *Spec) Layer(layer uint8) *Spec {
	if s.Layers == nil && layer == 0 {
		return s
	}
	if int(layer) >= len(s.Layers) {
		return nil
	}
	return s.Layers[layer]
}

// Depth returns the number of layers, 1 for a single machine.
func (s *Spec) Depth() int { return max(1, len(s.Layers)) }

// All yields the layers with their numbers, bottom first.
func (s *Spec) All() iter.Seq2[uint8, *Spec] {
	return func(yield func(uint8, *Spec) bool) {
		for i := range uint8(s.Depth()) {
			if !yield(i, s.Layer(i)) {
				return
			}
		}
	}
}

// Top returns the highest layer, which says what the whole is for.
func (s *Spec) Top() *Spec { return s.Layer(uint8(s.Depth() - 1)) }

// Has reports whether a layer is of a family.
func (s *Spec) Has(f Family) bool {
	for _, l := range s.All() {
		if l.Family == f {
			return true
		}
	}
	return false
}

// MessageNames returns the names of the messages of all layers.
func (s *Spec) MessageNames() []string {
	var names []string
	for _, l := range s.All() {
		for _, m := range l.Messages {
			names = append(names, m.Name)
		}
	}
	return names
}

// TimerText returns the text of a timer of a layer: "reply", or "check(3)" for a timer
// about the process labelled 3.
func (s *Spec) TimerText(layer uint8, t Timer, c *Config) string {
	name := "?"
	if l := s.Layer(layer); l != nil && t.Name() > 0 && int(t.Name()) <= len(l.Timers) {
		name = l.Timers[t.Name()-1]
	}
	if t.Peer() == None {
		return name
	}
	return name + "(" + c.Text(t.Peer()) + ")"
}

// RuleText returns the short name of a rule of a layer.
func (s *Spec) RuleText(layer uint8, r Rule) string {
	l := s.Layer(layer)
	if l == nil || r == 0 || int(r) > len(l.Rules) {
		return "?"
	}
	return l.Rules[r-1].Name
}

// MessageText returns a message without sender and receiver, with the symbols of the
// paper: "REQUEST ts=3". Declared fields are printed even when they are zero, except
// the term, which is zero in every run without an election.
func (s *Spec) MessageText(m *Message, c *Config) string {
	decl := s.Message(m.Layer, m.Type)
	if decl == nil {
		return "?"
	}
	var b strings.Builder
	b.WriteString(decl.Name)
	for _, use := range decl.Fields {
		if use.Field == FieldTerm && m.Term == 0 {
			continue
		}
		if use.Carried {
			b.WriteString(" [" + s.carriedText(m.Data, c) + "]")
			continue
		}
		b.WriteString(" " + use.Symbol + "=" + use.text(m, c))
	}
	return b.String()
}

// carriedText is MessageText of a message inside another.
func (s *Spec) carriedText(data []byte, c *Config) string {
	var inner Message
	if inner.DecodeRaw(data, c.N) != nil {
		return "?"
	}
	return s.MessageText(&inner, c)
}

// text returns the value of the field in m.
func (u FieldUse) text(m *Message, c *Config) string {
	switch u.Field {
	case FieldSubject:
		return c.Text(m.Subject)
	case FieldTerm:
		return strconv.FormatUint(m.Term.Round(), 10)
	case FieldSeq:
		return strconv.FormatUint(m.Seq, 10)
	case FieldClock:
		return strconv.FormatUint(m.Clock, 10)
	case FieldFence:
		return m.Fence.String()
	case FieldValue:
		return u.valueText(m.Value)
	case FieldVector:
		return fmt.Sprint(m.Vector)
	case FieldIDs:
		return "[" + strings.Join(c.Texts(m.IDs), " ") + "]"
	default:
		return fmt.Sprintf("%q", m.Data)
	}
}

func (u FieldUse) valueText(v int64) string {
	if v >= 0 && v < int64(len(u.Names)) {
		return u.Names[v]
	}
	return strconv.FormatInt(v, 10)
}

// Validate checks that the configuration fits the algorithm. The error names the wrong
// value and what is expected.
func (s *Spec) Validate(c *Config) error {
	if err := c.validate(); err != nil {
		return err
	}
	if s.Needs.Topology == Tree && c.Topology.Parent == nil {
		return fmt.Errorf("process: %s needs a tree in the topology", s.Name)
	}
	if s.Needs.Topology == Quorums && c.Topology.Quorums == nil {
		return fmt.Errorf("process: %s needs voting sets in the topology", s.Name)
	}
	for _, value := range c.Options {
		if err := s.validateOption(value); err != nil {
			return err
		}
	}
	return s.check(c)
}

// check runs the checks of the algorithm and of all its layers.
func (s *Spec) check(c *Config) error {
	for _, l := range s.Layers {
		if err := l.check(c); err != nil {
			return err
		}
	}
	if s.Check == nil {
		return nil
	}
	return s.Check(c)
}

func (s *Spec) validateOption(value OptionValue) error {
	var names []string
	for _, o := range s.AllOptions() {
		if o.Name == value.Name {
			return o.validate(s.Name, value.Value)
		}
		names = append(names, o.Name)
	}
	if len(names) == 0 {
		return fmt.Errorf("process: %s has no option %q; it has no options", s.Name, value.Name)
	}
	return fmt.Errorf("process: %s has no option %q; it has %s", s.Name, value.Name, strings.Join(names, ", "))
}

// AllOptions returns the options of the algorithm and of all its layers.
func (s *Spec) AllOptions() []Option {
	options := slices.Clone(s.Options)
	for _, l := range s.Layers {
		options = append(options, l.Options...)
	}
	return options
}

// Option returns an option of the algorithm or of one of its layers, or nil.
func (s *Spec) Option(name string) *Option {
	all := s.AllOptions()
	if i := slices.IndexFunc(all, func(o Option) bool { return o.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Number returns the value of a numeric option, or another if there is none of the name.
// The configuration must have passed Validate.
func (s *Spec) Number(c *Config, name string, absent int) int {
	o := s.Option(name)
	if o == nil {
		return absent
	}
	n, err := strconv.Atoi(c.Option(name, o.Default))
	Assert(err == nil, "a numeric option was validated")
	return n
}

// Combinations returns every combination of the options that have named values.
func (s *Spec) Combinations() [][]OptionValue {
	all := [][]OptionValue{nil}
	for _, o := range s.AllOptions() {
		var longer [][]OptionValue
		for _, value := range o.Values {
			for _, c := range all {
				longer = append(longer, append(c[:len(c):len(c)], OptionValue{Name: o.Name, Value: value}))
			}
		}
		if longer != nil {
			all = longer
		}
	}
	return all
}

func (o *Option) validate(algorithm, value string) error {
	if o.Values != nil {
		if slices.Contains(o.Values, value) {
			return nil
		}
		return fmt.Errorf("process: option %s of %s: %q: must be one of [%s]",
			o.Name, algorithm, value, strings.Join(o.Values, " "))
	}
	if n, err := strconv.Atoi(value); err != nil || n < o.Min || n > o.Max {
		return fmt.Errorf("process: option %s of %s: %q: must be a number from %d to %d",
			o.Name, algorithm, value, o.Min, o.Max)
	}
	return nil
}

// The votes and the outcomes of a transaction, as values of Propose and Decide. A vote
// says which outcome the process can accept: a vote of Abort excludes a commit.
const (
	Abort  int64 = 0 // the vote no
	Commit int64 = 1 // the vote yes
)

// The words for the values of votes and of outcomes.
var (
	VoteNames    = []string{"no", "yes"}
	OutcomeNames = []string{"abort", "commit"}
)

// ValueWord returns the word for the value of an input or output of the algorithm, or
// "" if it has none.
func (s *Spec) ValueWord(input bool, value int64) string {
	names := OutcomeNames
	if input {
		names = VoteNames
	}
	if s.Top().Family != Transaction || value < 0 || value >= int64(len(names)) {
		return ""
	}
	return names[value]
}

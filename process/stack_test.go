package process_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/process"
)

// layer is a machine that logs its events, and has configured effects for each kind of
// event.
type layer struct {
	name string
	log  *[]string
	on   map[process.Kind]func(ev *process.Event, fx *process.Effects)
	busy bool
}

func (m *layer) Step(ev *process.Event, fx *process.Effects) {
	text := m.name + " " + ev.Kind.String()
	if ev.Message != nil {
		text += fmt.Sprintf(" %d", ev.Message.Seq)
	}
	*m.log = append(*m.log, text)
	if do := m.on[ev.Kind]; do != nil {
		do(ev, fx)
	}
}

func (m *layer) Fields(f *process.Fields) { f.Durable().Bool("busy", &m.busy) }
func (m *layer) Idle() bool               { return !m.busy }

// tower is a stack of layers, bottom first, and what they log.
type tower struct {
	machine process.Machine
	layers  []*layer
	log     []string
	fx      process.Effects
}

func newTower(specs ...*process.Spec) *tower {
	s := &tower{}
	for _, spec := range specs {
		l := &layer{name: spec.Name, log: &s.log, on: map[process.Kind]func(*process.Event, *process.Effects){}}
		s.layers = append(s.layers, l)
		spec.New = func(process.ID, *process.Config) process.Machine { return l }
	}
	s.machine = process.Compose("tower", "Tower", specs...).New(0, &process.Config{N: 3})
	return s
}

func detectorElectionLock() *tower {
	return newTower(
		&process.Spec{Name: "beat", Family: process.Detector},
		&process.Spec{Name: "bully", Family: process.Election},
		&process.Spec{Name: "lock", Family: process.Mutex})
}

func (s *tower) step(ev process.Event) {
	s.fx.Begin(0, nil)
	s.log = s.log[:0]
	s.machine.Step(&ev, &s.fx)
}

// external lists the effects that are for the host, with their layers.
func (s *tower) external() string {
	var list []string
	for i := range s.fx.Len() {
		if e := s.fx.At(i); !e.Internal {
			list = append(list, fmt.Sprintf("%s@%d", e.Kind, e.Layer))
		}
	}
	return strings.Join(list, " ")
}

func (s *tower) expect(t *testing.T, external string, log ...string) {
	t.Helper()
	if !slices.Equal(s.log, log) {
		t.Errorf("layers got %q, want %q", s.log, log)
	}
	if got := s.external(); got != external {
		t.Errorf("the host got %q, want %q", got, external)
	}
}

func TestStackAddressesEvents(t *testing.T) {
	s := detectorElectionLock()
	s.step(process.Event{Kind: process.Start})
	s.expect(t, "", "beat start", "bully start", "lock start")
	s.step(process.Event{Kind: process.Fire, Layer: 1})
	s.expect(t, "", "bully fire")
	s.step(process.Event{Kind: process.Deliver, Message: &process.Message{Layer: 2, Seq: 7}})
	s.expect(t, "", "lock deliver 7")
	s.step(process.Event{Kind: process.Acquire})
	s.expect(t, "", "lock acquire")
	s.step(process.Event{Kind: process.Campaign})
	s.expect(t, "", "bully campaign")
	s.step(process.Event{Kind: process.Fail, Peer: 1})
	s.expect(t, "", "beat fail", "bully fail", "lock fail")
}

func TestStackTurnsEffectsIntoEventsAbove(t *testing.T) {
	s := detectorElectionLock()
	s.layers[0].on[process.Fire] = func(_ *process.Event, fx *process.Effects) {
		fx.Suspect(2)
		fx.Arm(1, 1, 2)
	}
	s.layers[1].on[process.Suspect] = func(ev *process.Event, fx *process.Effects) {
		fx.Elect(ev.Peer-1, process.MakeTerm(3, ev.Peer-1))
	}
	var leader process.ID
	var term process.Term
	s.layers[2].on[process.Elected] = func(ev *process.Event, fx *process.Effects) {
		leader, term = ev.Peer, ev.Term
		fx.Grant(5)
	}
	s.step(process.Event{Kind: process.Fire, Layer: 0})
	s.expect(t, "arm@0 grant@2", "beat fire", "bully suspect", "lock suspect", "lock elected")
	if leader != 1 || term.Round() != 3 {
		t.Errorf("the lock heard of leader %d in round %d, want 1 in 3", leader, term.Round())
	}
}

func TestStackTurnsRequestsIntoCommandsBelow(t *testing.T) {
	s := detectorElectionLock()
	s.layers[2].on[process.Acquire] = func(_ *process.Event, fx *process.Effects) { fx.Campaign() }
	s.step(process.Event{Kind: process.Acquire})
	s.expect(t, "", "lock acquire", "bully campaign")

	// Nobody is below: the host gets it.
	s.layers[0].on[process.Start] = func(_ *process.Event, fx *process.Effects) { fx.Campaign() }
	s.step(process.Event{Kind: process.Start})
	s.expect(t, "campaign@0", "beat start", "bully start", "lock start")

	// A consensus over a lock asks it for the right to enter, and hears of it.
	s = newTower(&process.Spec{Name: "lock", Family: process.Mutex}, &process.Spec{Name: "cell", Family: process.Agreement})
	s.layers[1].on[process.Propose] = func(_ *process.Event, fx *process.Effects) { fx.Acquire() }
	s.layers[0].on[process.Acquire] = func(_ *process.Event, fx *process.Effects) { fx.Grant(1) }
	s.layers[1].on[process.Granted] = func(_ *process.Event, fx *process.Effects) {
		fx.Decide(8)
		fx.Release()
	}
	s.step(process.Event{Kind: process.Propose, Value: 8})
	s.expect(t, "decide@1", "cell propose", "lock acquire", "cell granted", "lock release")
}

// TestStackOverCarrier: a message of a layer goes to the carrier inside a message of the
// carrier, and what the carrier delivers goes back up.
func TestStackOverCarrier(t *testing.T) {
	s := newTower(&process.Spec{Name: "fifo", Carrier: true}, &process.Spec{Name: "lock", Family: process.Mutex})
	s.layers[0].on[process.Transmit] = func(ev *process.Event, fx *process.Effects) {
		fx.Send(1, process.Message{Type: 1, Data: ev.Message.AppendRaw(nil)})
	}
	s.layers[1].on[process.Acquire] = func(_ *process.Event, fx *process.Effects) {
		fx.Broadcast(process.Message{Type: 1, Seq: 42, Vector: []uint64{1, 2}})
		fx.Arm(1, 1, 1)
	}
	s.step(process.Event{Kind: process.Acquire})
	s.expect(t, "arm@1 send@0", "lock acquire", "fifo transmit 42")

	wire := s.fx.Message(s.fx.At(2))
	s.layers[0].on[process.Deliver] = func(ev *process.Event, fx *process.Effects) {
		var carried process.Message
		if err := carried.DecodeRaw(ev.Message.Data, 3); err != nil {
			t.Fatal(err)
		}
		fx.Deliver(&carried)
	}
	s.step(process.Event{Kind: process.Deliver, Message: &process.Message{Layer: wire.Layer, Data: slices.Clone(wire.Data)}})
	s.expect(t, "", "fifo deliver 0", "lock deliver 42")

	// What the top layer delivers is for the application.
	s.layers[1].on[process.Release] = func(_ *process.Event, fx *process.Effects) {
		fx.Deliver(&process.Message{Layer: 1, Seq: 3})
	}
	s.step(process.Event{Kind: process.Release})
	s.expect(t, "deliver@1", "lock release")
}

func TestStackState(t *testing.T) {
	s := detectorElectionLock()
	idler := s.machine.(process.Idler)
	if !idler.Idle() {
		t.Error("a stack of idle machines is not idle")
	}
	s.layers[1].busy = true
	if idler.Idle() {
		t.Error("a stack with a busy machine is idle")
	}
	var names []string
	for _, v := range process.View(s.machine, &process.Config{N: 3}) {
		names = append(names, v.Name+"="+v.String())
	}
	if want := []string{"beat.busy=false", "bully.busy=true", "lock.busy=false"}; !slices.Equal(names, want) {
		t.Errorf("fields are %v, want %v", names, want)
	}
	saved := process.AppendDurable(nil, s.machine)
	s.layers[1].busy = false
	if err := process.DecodeDurable(saved, s.machine, 3); err != nil || !s.layers[1].busy {
		t.Errorf("a durable field of a layer was not restored, error %v", err)
	}
}

func TestComposedSpec(t *testing.T) {
	lock := &process.Spec{Name: "lock", Family: process.Mutex, Cancels: true,
		Needs:  process.Needs{Elector: true, Detector: process.ReliableDetector, FIFO: true},
		Timers: []string{"reply"}}
	bully := &process.Spec{Name: "bully", Family: process.Election, Needs: process.Needs{Synchrony: true}}
	beat := &process.Spec{Name: "beat", Family: process.Detector, Needs: process.Needs{Reliable: true}}
	s := process.Compose("full", "Full", process.Compose("half", "Half", beat, bully), lock)
	if s.LayerText() != "lock over bully over beat" || s.Depth() != 3 {
		t.Errorf("layers are %q", s.LayerText())
	}
	want := process.Needs{FIFO: true, Reliable: true, Synchrony: true}
	if s.Needs != want || !s.Cancels || s.Family != process.Mutex {
		t.Errorf("needs %+v, cancels %v, family %s; want %+v, true, mutex", s.Needs, s.Cancels, s.Family, want)
	}
	if got := s.TimerText(2, 1, &process.Config{N: 1}); got != "reply" {
		t.Errorf("timer of the top layer is %q, want reply", got)
	}
	if s.Layer(3) != nil || s.Message(3, 1) != nil {
		t.Error("a layer that does not exist has a spec")
	}
}

func TestStackStepDoesNotAllocate(t *testing.T) {
	over := &process.Spec{Name: "top", New: func(process.ID, *process.Config) process.Machine {
		return &relay{clocks: make([]uint64, 8)}
	}}
	under := &process.Spec{Name: "under", Carrier: true, New: func(process.ID, *process.Config) process.Machine { return &pipe{} }}
	m := process.Compose("both", "Both", under, over).New(0, &process.Config{N: 8})
	var fx process.Effects
	ev := &process.Event{Kind: process.Deliver, Message: &process.Message{Type: 1, From: 1, Layer: 1}}
	allocs := testing.AllocsPerRun(1000, func() {
		fx.Begin(0, nil)
		m.Step(ev, &fx)
	})
	if allocs != 0 {
		t.Errorf("a step of a stack allocates %v times", allocs)
	}
	if fx.Len() != 6 {
		t.Errorf("%d effects, want 4 of the upper and 2 of the lower layer", fx.Len())
	}
}

// pipe is a carrier that packs messages into a buffer it keeps.
type pipe struct{ scratch []byte }

func (m *pipe) Step(ev *process.Event, fx *process.Effects) {
	if ev.Kind == process.Transmit {
		m.scratch = ev.Message.AppendRaw(m.scratch[:0])
		fx.Broadcast(process.Message{Type: 1, Data: m.scratch})
	}
}

func (m *pipe) Fields(*process.Fields) {}

// camera keeps the encoded state of the machines above at every Start.
type camera struct {
	above []process.Machine
	shot  []byte
}

func (m *camera) Observe(above []process.Machine) { m.above = above }

func (m *camera) Step(ev *process.Event, _ *process.Effects) {
	if ev.Kind == process.Start {
		m.shot = process.AppendState(m.shot[:0], m.above[0])
	}
}

func (m *camera) Fields(f *process.Fields) { f.Bytes("shot", &m.shot) }

func TestObserverSeesTheMachinesAbove(t *testing.T) {
	m, over := &camera{}, fullAlbum()
	stack := process.Compose("pair", "Pair",
		&process.Spec{Name: "camera", New: func(process.ID, *process.Config) process.Machine { return m }},
		&process.Spec{Name: "album", New: func(process.ID, *process.Config) process.Machine { return over }},
	).New(0, &process.Config{N: 3})
	var fx process.Effects
	fx.Begin(0, nil)
	stack.Step(&process.Event{Kind: process.Start}, &fx)
	if !slices.Equal(m.shot, process.AppendState(nil, over)) {
		t.Error("the observer did not see the state of the machine above")
	}
}

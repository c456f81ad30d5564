package process

import "strings"

// Stack is several machines in one process, bottom first: a detector below an election
// below a lock. It is pure and a Machine itself, so hosts need not know that there are
// several. Within one step it
//
//   - gives a delivered message or a timer to the layer that its tag names,
//     commands to the top layer, except Campaign and Resign, which go to the
//     highest election, and Record, which goes to the highest recorder of global
//     states; and all other events to every layer;
//   - turns what a layer announces (Suspect, Trust, Fail, Rejoin, Elect, Decide)
//     into the event of the same name at every layer above, and Grant into
//     Granted at the next;
//   - turns what a layer asks for (Campaign, Acquire, Release, Cancel, Propose) into a
//     command to the layer below;
//   - passes Send and Broadcast of a layer down to the nearest carrier below it,
//     as Transmit, and what that carrier delivers back up.
//
// Effects that another layer took are left in place, marked Internal. Layers are
// stepped in the order in which the effects were made, so a run is one sequence.
type Stack struct {
	layers []Machine
	specs  []*Spec

	scratchEvent   Event
	scratchMessage Message
}

// Compose returns the Spec of a stack of the given algorithms, bottom first. Its
// family, claims and rule for Cancel are those of the top one.
func Compose(name, title string, layers ...*Spec) *Spec {
	var flat []*Spec
	for _, l := range layers {
		if l.Layers != nil {
			flat = append(flat, l.Layers...)
		} else {
			flat = append(flat, l)
		}
	}
	Assert(len(flat) > 0 && len(flat) < 256, "a stack has 1 to 255 layers")
	top := flat[len(flat)-1]
	s := &Spec{
		Name: name, Title: title, Paper: top.Paper, Documents: top.Documents, Family: top.Family,
		Needs: composeNeeds(flat), Claims: top.Claims, Cancels: top.Cancels, Layers: flat,
	}
	s.New = func(self ID, c *Config) Machine { return newStack(flat, self, c) }
	return s
}

// composeNeeds returns the needs of all layers, without those that lower layers
// provide.
func composeNeeds(layers []*Spec) Needs {
	var needs Needs
	elector, detector := false, false
	for _, l := range layers {
		needs.FIFO = needs.FIFO || l.Needs.FIFO
		needs.Causal = needs.Causal || l.Needs.Causal
		needs.Reliable = needs.Reliable || l.Needs.Reliable
		needs.NoDuplication = needs.NoDuplication || l.Needs.NoDuplication
		needs.Synchrony = needs.Synchrony || l.Needs.Synchrony
		needs.Clock = needs.Clock || l.Needs.Clock
		needs.Awake = needs.Awake || l.Needs.Awake
		needs.Elector = needs.Elector || l.Needs.Elector && !elector
		if !detector {
			needs.Detector = max(needs.Detector, l.Needs.Detector)
		}
		if l.Needs.Topology != Complete {
			needs.Topology = l.Needs.Topology
		}
		elector = elector || l.Family == Election
		detector = detector || l.Family == Detector
	}
	return needs
}

// Observer is a layer that reads the machines above it: a recorder of global states,
// which is also their carrier, encodes them when the marker comes. It sees complete
// states between the steps of its own layer, and changes nothing.
type Observer interface {
	// Observe is called once, before the first step, with the layers above.
	Observe(above []Machine)
}

// Overseer is a layer that reads the machine right below it: a deadlock detector asks
// it which processes its process waits for. It changes nothing there.
type Overseer interface {
	// Oversee is called once, before the first step.
	Oversee(below Machine)
}

func newStack(specs []*Spec, self ID, c *Config) *Stack {
	s := &Stack{specs: specs}
	for _, spec := range specs {
		s.layers = append(s.layers, spec.New(self, c))
	}
	for i, m := range s.layers {
		if observer, ok := m.(Observer); ok {
			observer.Observe(s.layers[i+1:])
		}
		if overseer, ok := m.(Overseer); ok && i > 0 {
			overseer.Oversee(s.layers[i-1])
		}
	}
	return s
}

// Depth returns the number of layers.
func (s *Stack) Depth() int { return len(s.layers) }

// Layer returns the machine of one layer.
func (s *Stack) Layer(i int) Machine { return s.layers[i] }

// Step gives the event to its layers, then routes their requests until none is left.
func (s *Stack) Step(ev *Event, fx *Effects) {
	routed := fx.Len()
	lo, hi := s.target(ev)
	for layer := lo; layer <= hi; layer++ {
		s.stepLayer(layer, ev, fx)
	}
	for ; routed < fx.Len(); routed++ {
		s.route(routed, ev.Now, fx)
	}
	fx.layer = 0
}

// target returns the first and the last layer that an event of the host is for.
func (s *Stack) target(ev *Event) (lo, hi int) {
	top := len(s.layers) - 1
	switch ev.Kind {
	case Deliver:
		return int(ev.Message.Layer), int(ev.Message.Layer)
	case Fire:
		return int(ev.Layer), int(ev.Layer)
	case Acquire, Cancel, Release, Propose, Transmit:
		return top, top
	case Campaign, Resign:
		return s.elector(top + 1), s.elector(top + 1)
	case Record:
		return s.recorder(), s.recorder()
	default:
		return 0, top
	}
}

// elector returns the highest election below the given layer, or else the layer
// right below it.
func (s *Stack) elector(below int) int {
	for layer := below - 1; layer >= 0; layer-- {
		if s.specs[layer].Family == Election {
			return layer
		}
	}
	return below - 1
}

// recorder returns the highest layer that records global states, or the top.
func (s *Stack) recorder() int {
	for layer := len(s.layers) - 1; layer >= 0; layer-- {
		if s.specs[layer].Family == GlobalState {
			return layer
		}
	}
	return len(s.layers) - 1
}

// carrier returns the nearest carrier below the layer, or -1.
func (s *Stack) carrier(layer int) int {
	for layer--; layer >= 0; layer-- {
		if s.specs[layer].Carrier {
			return layer
		}
	}
	return -1
}

func (s *Stack) stepLayer(layer int, ev *Event, fx *Effects) {
	fx.layer = uint8(layer)
	s.layers[layer].Step(ev, fx)
}

// route gives effect number i to the layers that take it, if any.
func (s *Stack) route(i int, now Duration, fx *Effects) {
	e := *fx.At(i)
	ev := &s.scratchEvent
	*ev = Event{Now: now, Peer: e.Peer, Term: e.Term, Fence: e.Fence, Value: e.Value}
	lo, hi := s.receivers(&e, ev, fx)
	if lo < 0 || lo > hi {
		return
	}
	fx.At(i).Internal = true
	for layer := lo; layer <= hi; layer++ {
		s.stepLayer(layer, ev, fx)
	}
}

// becomes is the event that an effect turns into at the layers that take it.
var becomes = [effectEnd]Kind{
	EffectSuspect: Suspect, EffectTrust: Trust, EffectFail: Fail, EffectRejoin: Rejoin,
	EffectElect: Elected, EffectDecide: Decided, EffectGrant: Granted,
	EffectCampaign: Campaign, EffectAcquire: Acquire, EffectRelease: Release, EffectPropose: Propose, EffectCancel: Cancel,
	EffectSend: Transmit, EffectBroadcast: Transmit, EffectDeliver: Deliver,
}

// receivers completes the event that the effect becomes and returns the first and last
// layer that receive it; lo > hi or lo < 0 means that the host does.
func (s *Stack) receivers(e *Effect, ev *Event, fx *Effects) (lo, hi int) {
	layer, top := int(e.Layer), len(s.layers)-1
	ev.Kind = becomes[e.Kind]
	switch e.Kind {
	case EffectGrant:
		return layer + 1, min(layer+1, top)
	case EffectCampaign:
		if lo = s.elector(layer); lo >= 0 && s.specs[lo].Family == Election {
			return lo, lo
		}
		return -1, -1 // the host may provide it
	case EffectAcquire, EffectRelease, EffectPropose, EffectCancel:
		return s.below(layer), s.below(layer)
	case EffectSend, EffectBroadcast:
		s.borrow(e, ev, fx)
		return s.carrier(layer), s.carrier(layer)
	case EffectDeliver:
		s.borrow(e, ev, fx)
		return s.delivery(layer, int(ev.Message.Layer))
	case EffectRejoin:
		ev.Incarnation, ev.Value = uint64(e.Value), 0
	}
	if ev.Kind == 0 {
		return -1, -1
	}
	return layer + 1, top
}

// below returns the nearest layer below that is not just a carrier, or -1. A request
// that a carrier cannot handle goes to the layer below it, and finally to the host.
func (s *Stack) below(layer int) int {
	for layer--; layer >= 0 && s.specs[layer].Carrier; layer-- {
	}
	return layer
}

// delivery is the destination of a message that one layer delivers and another sent:
// the sending layer, or the application if the layer delivers its own message.
func (s *Stack) delivery(by, sent int) (lo, hi int) {
	if sent <= by || sent >= len(s.layers) {
		return -1, -1
	}
	return sent, sent
}

// borrow lends the message of the effect to the event. The copy keeps its slices. The
// effects do not move these, even if they grow themselves.
func (s *Stack) borrow(e *Effect, ev *Event, fx *Effects) {
	s.scratchMessage = *fx.Message(e)
	ev.Message = &s.scratchMessage
}

// Fields names the fields of every layer, each with the name of its algorithm
// and a dot in front.
func (s *Stack) Fields(f *Fields) {
	outer := f.group
	for i, m := range s.layers {
		f.group = outer + s.specs[i].Name + "."
		m.Fields(f)
	}
	f.group = outer
}

// Idle reports whether every layer is an Idler, and is idle.
func (s *Stack) Idle() bool {
	for _, m := range s.layers {
		if idler, ok := m.(Idler); !ok || !idler.Idle() {
			return false
		}
	}
	return true
}

// LayerText returns the names of the layers, top first, as in "central over bully".
func (s *Spec) LayerText() string {
	var names []string
	for i := s.Depth() - 1; i >= 0; i-- {
		names = append(names, s.Layer(uint8(i)).Name)
	}
	return strings.Join(names, " over ")
}

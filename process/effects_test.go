package process_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/process"
)

func kinds(fx *process.Effects) []process.EffectKind {
	var list []process.EffectKind
	for i := range fx.Len() {
		list = append(list, fx.At(i).Kind)
	}
	return list
}

func TestEffectsKeepProgramOrder(t *testing.T) {
	var fx process.Effects
	fx.Begin(1, nil)
	fx.Save()
	fx.Send(0, process.Message{Type: 1, Seq: 5})
	fx.Arm(2, 10, 20)
	fx.Broadcast(process.Message{Type: 2})
	want := []process.EffectKind{process.EffectSave, process.EffectSend, process.EffectArm, process.EffectBroadcast}
	if got := kinds(&fx); !slices.Equal(got, want) {
		t.Fatalf("effects are %v, want %v", got, want)
	}
	m := fx.Message(fx.At(1))
	if m.From != 1 || m.To != 0 || m.Seq != 5 {
		t.Errorf("message is %+v, want one from 1 to 0 with seq 5", m)
	}
	if m := fx.Message(fx.At(3)); m.From != 1 || m.To != process.None || m.Type != 2 {
		t.Errorf("broadcast is %+v, want one of type 2 from 1 to nobody in particular", m)
	}
	fx.Begin(2, nil)
	if fx.Len() != 0 {
		t.Errorf("%d effects are left over from the last step", fx.Len())
	}
}

func TestEffectsCopyWhatTheyReference(t *testing.T) {
	var fx process.Effects
	fx.Begin(0, nil)
	vector, ids, data := []uint64{1, 2}, []process.ID{3}, []byte("x")
	for range 100 { // the effects grow and move
		fx.Send(1, process.Message{Vector: vector, IDs: ids, Data: data})
	}
	vector[0], ids[0], data[0] = 9, 9, 'y'
	for i := range fx.Len() {
		m := fx.Message(fx.At(i))
		if m.Vector[0] != 1 || m.IDs[0] != 3 || m.Data[0] != 'x' {
			t.Fatalf("message %d changed with the machine's slices: %+v", i, m)
		}
	}
}

func TestChoose(t *testing.T) {
	var fx process.Effects
	fx.Begin(0, nil)
	if k := fx.Choose(5); k != 0 {
		t.Errorf("without a chooser the choice is %d, want 0", k)
	}
	fx.Begin(0, func(n int) int { return n - 1 })
	if k := fx.Choose(5); k != 4 || fx.At(0).Value != 4 || fx.At(0).Hi != 5 {
		t.Errorf("choice is %d, recorded as %+v; want 4 of 5", k, fx.At(0))
	}
}

// promised returns the promise that f breaks.
func promised(f func()) (v process.Violation) {
	defer func() {
		if err, ok := recover().(error); ok {
			errors.As(err, &v)
		}
	}()
	f()
	return ""
}

func TestAssertions(t *testing.T) {
	var fx process.Effects
	fx.Begin(1, func(n int) int { return n })
	cases := map[process.Violation]func(){
		"a message goes to another process":      func() { fx.Send(1, process.Message{}) },
		"a timer has a range of positive delays": func() { fx.Arm(1, 5, 4) },
		"a choice has at least one alternative":  func() { fx.Choose(0) },
		"a choice is one of the alternatives":    func() { fx.Choose(3) },
		"a stack has 1 to 255 layers":            func() { process.Compose("empty", "Empty") },
		"a machine always names the same fields": func() { process.Diff(nil, make([]process.FieldView, 1)) },
		"a run is a function of its choices":     changeMind,
		"a message has a declared type":          func() { process.NewCodec(everything, 2).Append(nil, &process.Message{}) },
		"an encoded state can be decoded":        func() { process.Copy(newAlbum(), fullAlbum(), 1, nil) },
	}
	for want, f := range cases {
		if got := promised(f); got != want {
			t.Errorf("broken promise is %q, want %q", got, want)
		}
	}
}

func changeMind() {
	var o process.Odometer
	o.Choose(3)
	o.Next()
	o.Choose(2)
}

func TestOdometerTakesEveryCombinationOnce(t *testing.T) {
	var o process.Odometer
	seen := map[[3]int]bool{}
	for again := true; again; again = o.Next() {
		run := [3]int{o.Choose(2), -1, -1}
		if run[0] == 1 { // the number of choices may depend on choices
			run[1], run[2] = o.Choose(3), o.Choose(2)
		}
		if seen[run] {
			t.Errorf("combination %v was taken twice", run)
		}
		seen[run] = true
	}
	if len(seen) != 1+3*2 {
		t.Errorf("%d combinations were taken, want 7", len(seen))
	}
}

// relay answers every message with a broadcast, a timer and a rule.
type relay struct{ clocks []uint64 }

func (m *relay) Step(ev *process.Event, fx *process.Effects) {
	if ev.Kind != process.Deliver {
		return
	}
	m.clocks[0] = max(m.clocks[0], ev.Message.Clock) + 1
	fx.Rule(1)
	fx.Arm(1, 10, 20)
	fx.Send(ev.Message.From, process.Message{Type: 1, Clock: m.clocks[0]})
	fx.Broadcast(process.Message{Type: 1, Clock: m.clocks[0], Vector: m.clocks})
}

func (m *relay) Fields(f *process.Fields) { f.Clocks("clocks", m.clocks) }

// relayStep is what a host does for one event.
func relayStep() func() {
	var fx process.Effects
	var m process.Machine = &relay{clocks: make([]uint64, 8)}
	ev := &process.Event{Kind: process.Deliver, Message: &process.Message{Type: 1, From: 1}}
	return func() {
		fx.Begin(0, nil)
		m.Step(ev, &fx)
	}
}

func TestStepDoesNotAllocate(t *testing.T) {
	if allocs := testing.AllocsPerRun(1000, relayStep()); allocs != 0 {
		t.Errorf("a step allocates %v times", allocs)
	}
}

func BenchmarkStep(b *testing.B) {
	step := relayStep()
	b.ReportAllocs()
	for b.Loop() {
		step()
	}
}

package process_test

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// counter is a whole algorithm: on Acquire it tells everyone its next number.
type counter struct{ last uint64 }

func (m *counter) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Acquire:
		m.last++
		fx.Broadcast(process.Message{Type: 1, Clock: m.last})
	case process.Deliver:
		m.last = max(m.last, ev.Message.Clock)
	}
}

func (m *counter) Fields(f *process.Fields) { f.Clock("last", &m.last) }

var counterSpec = &process.Spec{
	Name:     "counter",
	Messages: []process.MessageSpec{{Name: "NEXT", Fields: []process.FieldUse{{Field: process.FieldClock, Symbol: "ts"}}}},
	New:      func(process.ID, *process.Config) process.Machine { return &counter{} },
}

// A host gives a machine an event and interprets the effects.
func Example() {
	c := &process.Config{N: 3}
	machines := []process.Machine{counterSpec.New(0, c), counterSpec.New(1, c), counterSpec.New(2, c)}

	var fx process.Effects
	fx.Begin(0, nil)
	machines[0].Step(&process.Event{Kind: process.Acquire}, &fx)
	for i := range fx.Len() {
		e := fx.At(i)
		fmt.Println(e.Kind, counterSpec.MessageText(fx.Message(e), c))
	}
	for _, v := range process.View(machines[0], c) {
		fmt.Println(v.Name, v)
	}
	// Output:
	// broadcast NEXT ts=1
	// last 1
}

// An odometer runs through every combination of choices.
func ExampleOdometer() {
	var o process.Odometer
	for again := true; again; again = o.Next() {
		fmt.Print(o.Choose(2), o.Choose(3), " ")
	}
	// Output: 0 0 0 1 0 2 1 0 1 1 1 2
}

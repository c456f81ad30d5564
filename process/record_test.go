package process_test

import (
	"testing"

	"github.com/conclave-io/conclave/process"
)

// A command to record a global state goes to the highest recorder, not to the top layer.
func TestStackRecords(t *testing.T) {
	s := newTower(
		&process.Spec{Name: "beat", Family: process.Detector},
		&process.Spec{Name: "cut", Family: process.GlobalState, Carrier: true},
		&process.Spec{Name: "lock", Family: process.Mutex})
	s.step(process.Event{Kind: process.Record})
	s.expect(t, "", "cut record")
}

// A report of a machine reaches the application from any layer, and no other layer.
func TestStackReports(t *testing.T) {
	s := newTower(
		&process.Spec{Name: "cut", Family: process.GlobalState, Carrier: true},
		&process.Spec{Name: "clock", Family: process.ClockSync, Carrier: true},
		&process.Spec{Name: "lock", Family: process.Mutex})
	s.layers[1].on[process.Start] = func(_ *process.Event, fx *process.Effects) {
		fx.Report(process.Message{Type: 1, Clock: 7})
	}
	s.step(process.Event{Kind: process.Start})
	s.expect(t, "deliver@1", "cut start", "clock start", "lock start")
	if m := s.fx.Message(s.fx.At(0)); m.From != 0 || m.To != 0 || m.Layer != 1 || m.Clock != 7 {
		t.Errorf("the report is %+v", *m)
	}
}

// A message inside another is shown by what it says.
func TestCarriedMessageText(t *testing.T) {
	carrier := &process.Spec{Name: "cut", Messages: []process.MessageSpec{{Name: "CARRY",
		Fields: []process.FieldUse{{Field: process.FieldData, Symbol: "m", Carried: true}}}}}
	lock := &process.Spec{Name: "lock", Messages: []process.MessageSpec{{Name: "TOKEN",
		Fields: []process.FieldUse{{Field: process.FieldSeq, Symbol: "h"}}}}}
	spec := process.Compose("both", "Both", carrier, lock)
	c := &process.Config{N: 2}
	inner := process.Message{Type: 1, Layer: 1, Seq: 4}
	for data, want := range map[string]string{string(inner.AppendRaw(nil)): "CARRY [TOKEN h=4]", "x": "CARRY [?]"} {
		if got := spec.MessageText(&process.Message{Type: 1, Data: []byte(data)}, c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Between a lock and the host there may be carriers, which elect nobody.
func TestCampaignPassesCarriers(t *testing.T) {
	s := newTower(
		&process.Spec{Name: "cut", Family: process.GlobalState, Carrier: true},
		&process.Spec{Name: "clock", Family: process.ClockSync, Carrier: true},
		&process.Spec{Name: "lock", Family: process.Mutex})
	s.layers[2].on[process.Fire] = func(_ *process.Event, fx *process.Effects) {
		fx.Campaign()
		fx.Acquire()
	}
	s.step(process.Event{Kind: process.Fire, Layer: 2})
	s.expect(t, "campaign@2 acquire@2", "lock fire")
}

package globalstate

import (
	"bytes"
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T)     { processtest.Conform(t, Spec) }
func TestConformBank(t *testing.T) { processtest.Conform(t, overBank) }
func TestScripts(t *testing.T)     { processtest.Script(t, overBank, "testdata") }

// bank is a layer to record: accounts that send each other money. The sum of all accounts
// and of the money in flight never changes.
var bank = &process.Spec{
	Name: "bank", Title: "Accounts", Paper: "none", Family: process.Multicast,
	Messages: []process.MessageSpec{{Name: "PAY", Fields: []process.FieldUse{{Field: process.FieldValue, Symbol: "sum"}}}},
	Rules:    []process.RuleSpec{{Name: "B1", Text: "pay"}, {Name: "B2", Text: "receive"}},
	Claims:   process.Claims{Properties: []process.Claim{{Property: process.ConsistentCut}}},
	New: func(self process.ID, c *process.Config) process.Machine {
		return &account{c: c, self: self, balance: 100}
	},
}

var overBank = process.Compose("recorded-bank", "Accounts over a recorder", Spec, bank)

type account struct {
	c    *process.Config
	self process.ID

	balance int64
}

// Step pays what is proposed to the next process of the ring.
func (a *account) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Propose:
		if to := a.c.Topology.Next(a.self, a.c.N); to != a.self {
			fx.Rule(1)
			a.balance -= ev.Value
			fx.Send(to, process.Message{Type: 1, Value: ev.Value})
		}
	case process.Deliver:
		fx.Rule(2)
		a.balance += ev.Message.Value
	}
}

func (a *account) Fields(f *process.Fields) { f.Int("balance", &a.balance) }

// Every encoded part can be decoded, whatever ranks and messages it has. Other bytes are
// refused.
func TestParts(t *testing.T) {
	pay := process.Message{Type: 1, Layer: 1, From: 200, To: 3, Value: 5}
	r := recording{state: appendBytes([]byte{1}, []byte("state")), received: []received{{200, pay.AppendRaw(nil)}, {7, pay.AppendRaw(nil)}}}
	data := r.encode()
	p, err := DecodePart(data, 3, 300)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.States) != 1 || !bytes.Equal(p.States[0], []byte("state")) || len(p.Received) != 2 || p.Received[0].From != 200 || p.Received[1].From != 7 {
		t.Errorf("the part is %+v", p)
	}
	for i := range data {
		if _, err := DecodePart(data[:i], 3, 300); err == nil {
			t.Errorf("a part of %d of %d bytes is accepted", i, len(data))
		}
	}
	if _, err := DecodePart(append(data, 0), 3, 300); err == nil {
		t.Error("a part with a byte too many is accepted")
	}
	if _, err := DecodePart(data, 3, 100); err == nil {
		t.Error("a message from a rank that does not exist is accepted")
	}
}

func FuzzDecodePart(f *testing.F) {
	pay := process.Message{Type: 1, Layer: 1, Value: 5}
	r := recording{state: appendBytes([]byte{1}, []byte("state")), received: []received{{2, pay.AppendRaw(nil)}}}
	f.Add(r.encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := DecodePart(data, 1, 5)
		for _, m := range p.Received {
			if err != nil || m.From < 0 || m.From >= 5 || m.To != 1 {
				t.Errorf("decoded %+v with error %v", m, err)
			}
		}
	})
}

// The parts of a decoded state share no memory, so that a machine that is loaded after it
// sent a part keeps its recordings separate.
func TestRecordingsDoNotShareMemory(t *testing.T) {
	c := &process.Config{N: 3}
	m := newMachine(0, c).(*machine)
	for i := range uint64(3) {
		m.recordings = append(m.recordings, recording{name: name{1, i}, open: []process.ID{2}, state: []byte{byte(i)}})
	}
	saved := process.AppendState(nil, m)
	var fx process.Effects
	fx.Begin(0, nil)
	m.Step(&process.Event{Kind: process.Deliver, Message: &process.Message{Type: marker, From: 2, Subject: 1}}, &fx)
	if len(m.recordings) != 2 {
		t.Fatalf("%d recordings are left, want 2", len(m.recordings))
	}
	if err := process.DecodeState(saved, m, c.N); err != nil {
		t.Fatal(err)
	}
	if again := process.AppendState(nil, m); !bytes.Equal(again, saved) {
		t.Errorf("a state that was loaded into a used machine is %v, want %v", again, saved)
	}
}

package ricartagrawalatoken

import (
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

// A request for the token, message by message.
func Example() {
	c := &process.Config{N: 2}
	holder, client := Spec.New(0, c), Spec.New(1, c)
	var fx process.Effects
	step := func(p process.ID, m process.Machine, ev *process.Event) (sent process.Message) {
		fx.Begin(p, nil)
		m.Step(ev, &fx)
		for i := range fx.Len() {
			switch e := fx.At(i); e.Kind {
			case process.EffectSend, process.EffectBroadcast:
				sent.CopyFrom(fx.Message(e))
				sent.From = p
				fmt.Println(Spec.MessageText(&sent, c))
			case process.EffectGrant:
				fmt.Println("inside with fence", e.Fence)
			}
		}
		return sent
	}
	step(0, holder, &process.Event{Kind: process.Start})
	ask := step(1, client, &process.Event{Kind: process.Acquire})
	answer := step(0, holder, &process.Event{Kind: process.Deliver, Message: &ask})
	step(1, client, &process.Event{Kind: process.Deliver, Message: &answer})
	// Output:
	// REQ t=1
	// TOKEN token=[2 0] f=0 C=2
	// inside with fence 1
}

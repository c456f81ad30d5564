package tokenring

import (
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

// The token goes round once, and stops where somebody waits.
func Example() {
	c := &process.Config{N: 3}
	machines := []process.Machine{Spec.New(0, c), Spec.New(1, c), Spec.New(2, c)}
	var fx process.Effects
	step := func(p process.ID, ev *process.Event) (sent process.Message) {
		fx.Begin(p, nil)
		machines[p].Step(ev, &fx)
		for i := range fx.Len() {
			switch e := fx.At(i); e.Kind {
			case process.EffectSend:
				sent = *fx.Message(e)
				fmt.Println(Spec.MessageText(&sent, c), "to", c.Text(sent.To))
			case process.EffectGrant:
				fmt.Println(c.Text(p), "inside with fence", e.Fence)
			}
		}
		return sent
	}
	step(2, &process.Event{Kind: process.Acquire})
	msg := step(0, &process.Event{Kind: process.Start})
	msg = step(1, &process.Event{Kind: process.Deliver, Message: &msg})
	step(2, &process.Event{Kind: process.Deliver, Message: &msg})
	step(2, &process.Event{Kind: process.Release})
	// Output:
	// TOKEN h=1 f=0 to 2
	// TOKEN h=2 f=0 to 3
	// 3 inside with fence 1
	// TOKEN h=3 f=1 to 1
}

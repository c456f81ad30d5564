package registry

import (
	"strings"
	"testing"
)

// The answer to a refused try has the present holder and its value. The stored answer
// does not, so that many refused tries do not each store the value.
func TestRefusedTriesStoreNoValues(t *testing.T) {
	const sessions = 4
	name := strings.Repeat("\U000e0001", MaxName/4) // what takes most room in quotes
	chief := func(who string, sequence uint64, value string) Command {
		return Command{Op: OpAcquire, Session: sessionNamed(who), Sequence: sequence, Class: Election, Name: name, Value: value, Try: true}
	}
	r := New()
	applyAll(r, open("chief"), chief("chief", 2, strings.Repeat("\x01", MaxValue)))
	for _, who := range []string{"a", "b", "c", "d"}[:sessions] {
		applyAll(r, open(who))
		for sequence := uint64(2); sequence < 2+MaxAnswers; sequence++ {
			fx := applyAll(r, chief(who, sequence, ""))
			if got := fx.Outcomes[0].Result; got.Code != Held || len(got.Holder.Value) != MaxValue {
				t.Fatalf("a try is answered with %v", codeText(got.Code))
			}
		}
	}
	const answer, rest = MaxMessage + 32, 4096 // bytes of one answer, and of all that is not an answer or the value
	if size, bound := len(r.Freeze().Encode()), MaxValue+sessions*MaxAnswers*answer+rest; size > bound {
		t.Errorf("%d refused tries make a snapshot of %d bytes, over %d", sessions*MaxAnswers, size, bound)
	}

	// A try that comes again learns who holds now.
	fx := applyAll(r, Command{Op: OpUpdate, Session: sessionNamed("chief"), Sequence: 3, Hold: 2, Value: "new"}, chief("a", 2, ""))
	if got := fx.Outcomes[1].Result; got.Code != Held || got.Holder == nil || got.Holder.Value != "new" {
		t.Errorf("a try that comes again is answered with %+v", got)
	}
	fx = applyAll(r, Command{Op: OpRelease, Session: sessionNamed("chief"), Sequence: 4, Hold: 2}, chief("a", 2, ""))
	if got := fx.Outcomes[1].Result; got.Code != Held || got.Holder != nil {
		t.Errorf("a try that comes again once nobody holds is answered with %+v", got)
	}
}

// No message is long, whatever names and values it quotes: they are remembered.
func TestMessagesAreShort(t *testing.T) {
	long := []string{strings.Repeat("\U000e0001", MaxName/4), strings.Repeat("\u200b", MaxName/3), strings.Repeat("\"", MaxName)}
	r := New()
	sequence := uint64(1)
	say := func(who string, c Command) {
		sequence++
		c.Session, c.Sequence = sessionNamed(who), sequence
		fx := applyAll(r, open(who), c)
		for _, o := range fx.Outcomes {
			if len(o.Result.Message) > MaxMessage {
				t.Errorf("a message of %d bytes: %s", len(o.Result.Message), o.Result.Message)
			}
		}
	}
	for _, name := range long {
		for _, value := range []string{"", strings.Repeat("\xff", MaxValue), strings.Repeat("\xff", MaxValue+1)} {
			held := sequence + 1
			say("a", Command{Op: OpAcquire, Class: Election, Name: name, Value: value})
			say("a", Command{Op: OpTransfer, Hold: held, Value: value + "?"})
			say("b", Command{Op: OpAcquire, Class: Election, Name: name, Try: true})
			say("b", Command{Op: OpRevoke, Class: Election, Name: name, Fence: 1})
			say("b", Command{Op: OpRevoke, Name: name})
			say("a", Command{Op: OpAcquire, Name: name, Limit: 2})
			say("a", Command{Op: OpAcquire, Name: name, Limit: 3})
			say("b", Command{Op: OpAcquire, Name: name, Shared: true})
			say("b", Command{Op: OpAcquire, Name: name, Limit: 2})
			say("b", Command{Op: OpAcquire, Name: name, Limit: 2})
			say("b", Command{Op: OpRelease, Hold: sequence})
			say("c", Command{Op: OpAcquire, Name: name + "\x00"})
			say("c", Command{Op: OpAcquire, Name: name[:MaxName-8] + "\x00"})
			say("c", Command{Op: OpAcquire, Name: "\xff" + name[:MaxName-8]})
		}
	}
}

package process_test

import (
	"slices"
	"testing"

	"github.com/conclave-io/conclave/process"
)

// TestLie: each message to each receiver is replaced by itself, and nothing else is lost but
// the decision.
func TestLie(t *testing.T) {
	spec := &process.Spec{Lies: func(_ *process.Config, traitors []process.ID, m *process.Message) [][]process.Message {
		if !slices.Equal(traitors, []process.ID{1}) {
			t.Errorf("traitors %v", traitors)
		}
		both := process.AnyValue(m, 2)
		return append(both, slices.Concat(both[0], both[1]))
	}}
	chosen := []int{1, 3, 2, 0}
	var of []int
	var fx process.Effects
	fx.Begin(1, func(n int) int {
		of = append(of, n)
		k := chosen[0]
		chosen = chosen[1:]
		return k
	})
	fx.Rule(1)
	fx.Broadcast(process.Message{Type: 1, IDs: []process.ID{1}})
	fx.Arm(1, 5, 5)
	fx.Send(2, process.Message{Type: 2, Value: 1})
	fx.Decide(1)
	fx.Lie(spec, &process.Config{N: 4}, []process.ID{1})

	var sent [][3]int64
	others := 0
	for i := range fx.Len() {
		switch e := fx.At(i); e.Kind {
		case process.EffectSend:
			m := fx.Message(e)
			sent = append(sent, [3]int64{int64(m.Type), int64(m.To), m.Value})
			if m.From != 1 || m.Type == 1 && !slices.Equal(m.IDs, []process.ID{1}) {
				t.Errorf("sent %+v", m)
			}
		case process.EffectBroadcast, process.EffectDecide:
			t.Errorf("a traitor has the effect %s", e.Kind)
		case process.EffectRule, process.EffectArm:
			others++
		}
	}
	want := [][3]int64{{1, 0, 1}, {1, 3, 0}, {1, 3, 1}, {2, 2, 0}} // nothing to 2 but the last
	if !slices.Equal(sent, want) || others != 2 || !slices.Equal(of, []int{4, 4, 4, 4}) {
		t.Errorf("sent %v, want %v; %d other effects; choices of %v", sent, want, others, of)
	}
}

func TestAnyValue(t *testing.T) {
	for _, test := range []struct {
		own  int64
		want []int64
	}{{0, []int64{0, 1}}, {1, []int64{0, 1}}, {7, []int64{0, 1, 7}}, {-1, []int64{0, 1, -1}}} {
		var got []int64
		for _, lie := range process.AnyValue(&process.Message{Type: 3, Value: test.own}, 2) {
			if len(lie) != 1 || lie[0].Type != 3 {
				t.Errorf("%d: %+v", test.own, lie)
			}
			got = append(got, lie[0].Value)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%d: %v, want %v", test.own, got, test.want)
		}
	}
}

package berkeley

import (
	"testing"

	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }
func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

func TestAverage(t *testing.T) {
	for _, c := range []struct {
		ahead []int64
		gamma int64
		want  int64
	}{
		{nil, 10, 0},
		{[]int64{6, -6, 60}, 12, 0},   // 60 is left out
		{[]int64{6, -6, 60}, 10, -3},  // 6 and -6 are too far apart; of two pairs the slower
		{[]int64{50, 51, 52}, 10, 51}, // the master itself is left out
		{[]int64{-1 << 62, 1 << 62}, 0, -1 << 62},
		{[]int64{3}, 10, 1},
	} {
		var answers []answer
		for _, v := range c.ahead {
			answers = append(answers, answer{ahead: v})
		}
		if got := average(answers, c.gamma); got != c.want {
			t.Errorf("average of 0 and %v within %d is %d, want %d", c.ahead, c.gamma, got, c.want)
		}
	}
}

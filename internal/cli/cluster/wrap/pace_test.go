package wrap

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// An output that is not a terminal gets at most one line a minute, the newest. It gets nothing if the
// state is the one that was said last.
func TestPacerSaysTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		began := time.Now()
		p := &pacer{every: time.Minute, say: func(text string) { said = append(said, time.Since(began).String()+" "+text) }}
		for _, step := range []struct {
			at   time.Duration
			text string
		}{{0, "a"}, {time.Second, "b"}, {2 * time.Second, "c"}, {61 * time.Second, "d"}, {70 * time.Second, "c"}, {5 * time.Minute, "c"}, {6 * time.Minute, "e"}, {6*time.Minute + time.Second, "f"}} {
			time.Sleep(time.Until(began.Add(step.at)))
			p.tell(step.text)
		}
		p.stop()
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]string{"0s a", "1m0s c", "6m0s e"}, said); diff != "" {
			t.Error(diff)
		}
	})
}

// A person sees each change at once.
func TestPacerOnATerminal(t *testing.T) {
	var said []string
	p := &pacer{say: func(text string) { said = append(said, text) }}
	for _, text := range []string{"a", "a", "b", "a"} {
		p.tell(text)
	}
	p.stop()
	if diff := cmp.Diff([]string{"a", "b", "a"}, said); diff != "" {
		t.Error(diff)
	}
}

package majority

import (
	"strings"
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

// TestBackoff: each failed attempt doubles the range of the wait, up to 2^6, and a
// new request begins again.
func TestBackoff(t *testing.T) {
	c := &process.Config{N: 5}
	m := Spec.New(4, c)
	var fx process.Effects
	step := func(ev process.Event) {
		fx.Begin(4, nil)
		m.Step(&ev, &fx)
	}
	for request := range 2 {
		step(process.Event{Kind: process.Acquire})
		for k := 1; k <= 8; k++ {
			step(process.Event{Kind: process.Fire, Timer: answersTimer})
			last := *fx.At(fx.Len() - 1)
			if last.Timer != backoffTimer || last.Lo != 1 {
				t.Fatalf("the last effect is %+v, want the back-off", last)
			}
			if want := (4*c.D() + c.E()) << min(k, 6); last.Hi != want {
				t.Errorf("request %d: back-off up to %d ns after %d failed attempts, want %d", request+1, last.Hi, k, want)
			}
			step(process.Event{Kind: process.Fire, Timer: backoffTimer})
		}
		step(process.Event{Kind: process.Cancel})
	}
}

func option(name, value string) process.OptionValue {
	return process.OptionValue{Name: name, Value: value}
}

func TestSizes(t *testing.T) {
	cases := map[int][2]int{1: {1, 1}, 2: {1, 1}, 3: {2, 2}, 4: {3, 3}, 5: {4, 3}, 100: {4, 3}}
	for n, want := range cases {
		if replicas, votes := Sizes(&process.Config{N: n}); replicas != want[0] || votes != want[1] {
			t.Errorf("N=%d: %d of %d votes, want %d of %d", n, votes, replicas, want[1], want[0])
		}
	}
	c := &process.Config{N: 20, Options: []process.OptionValue{option("replicas", "10")}}
	if _, votes := Sizes(c); votes != 8 {
		t.Errorf("three quarters of 10 are %d, want 8", votes)
	}
}

func TestBadSizes(t *testing.T) {
	cases := map[string][2]string{
		"replicas: 6: must be at most 5":         {"6", "0"},
		"votes: 2 of 4 replicas: must be":        {"4", "2"},
		"more than half and at most all, 3 to 4": {"4", "5"},
	}
	for want, sizes := range cases {
		c := &process.Config{N: 5, Options: []process.OptionValue{option("replicas", sizes[0]), option("votes", sizes[1])}}
		if err := Spec.Validate(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, it should say %q", err, want)
		}
	}
}

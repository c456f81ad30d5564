package bully

import (
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

func TestElectionDoesNotAllocate(t *testing.T) {
	m := Spec.New(1, &process.Config{N: 3})
	var fx process.Effects
	msg := process.Message{Type: election, From: 0}
	events := []process.Event{
		{Kind: process.Deliver, Message: &msg}, {Kind: process.Fire, Timer: answerTimer},
		{Kind: process.Fail, Peer: 2}, {Kind: process.Rejoin, Peer: 2},
	}
	allocs := testing.AllocsPerRun(1000, func() {
		msg.Term = process.MakeTerm(msg.Term.Round()+2, 0)
		for i := range events {
			fx.Begin(1, nil)
			m.Step(&events[i], &fx)
		}
	})
	if allocs != 0 {
		t.Errorf("an election allocates %v times", allocs)
	}
}

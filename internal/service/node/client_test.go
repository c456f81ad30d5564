package node

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/queue"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// requests returns count requests, numbered in order from the given number.
func requests(from, count int) (commands []registry.Command) {
	for sequence := from; sequence < from+count; sequence++ {
		commands = append(commands, registry.Command{Sequence: uint64(sequence)})
	}
	return commands
}

// submit passes requests on, and fails if they have to wait.
func submit(t *testing.T, c *Conn, from, count int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := c.Submit(ctx, requests(from, count)); err != nil {
		t.Fatalf("connection %d: request %d: %v", c.number, from, err)
	}
}

// taken is what the loop gets, as connection and sequences, until nothing is left.
func taken(in *intake) (all [][]uint64) {
	for {
		c, commands := in.take()
		if c == nil {
			return all
		}
		turn := []uint64{c.number}
		for i := range commands {
			turn = append(turn, commands[i].Sequence)
		}
		all = append(all, turn)
	}
}

// Requests that arrive over one connection while the loop is busy are all available at
// its next turn, in order. So 128 clients that share a connection can share entries of
// the log.
func TestSubmissionsOfAConnectionGather(t *testing.T) {
	n := &Node{intake: newIntake(), done: make(chan struct{})}
	c := newConn(n, 1)
	for sequence := 1; sequence <= queue.Turn; sequence++ {
		submit(t, c, sequence, 1)
	}
	var got []uint64
	for _, piece := range taken(n.intake) {
		got = append(got, piece[1:]...)
	}
	for i, sequence := range got {
		if sequence != uint64(i+1) {
			t.Fatalf("taken in the order %v", got)
		}
	}
	if len(got) != queue.Turn {
		t.Errorf("%d requests were there, want %d", len(got), queue.Turn)
	}
}

// A connection with a full turn of requests waits until some are taken, or its context
// ends.
func TestFullConnectionWaits(t *testing.T) {
	n := &Node{intake: newIntake(), done: make(chan struct{})}
	c := newConn(n, 1)
	submit(t, c, 1, 10*queue.Turn) // one submission may be larger
	ended, end := context.WithCancel(t.Context())
	end()
	if err := c.Submit(ended, requests(1, 1)); !errors.Is(err, context.Canceled) {
		t.Fatalf("a submission beyond a turn: %v, want that it waits", err)
	}
	const more = 4
	results := make(chan error, more)
	for range more {
		go func() { results <- c.Submit(t.Context(), requests(10*queue.Turn+1, 1)) }()
	}
	in := 0
	for deadline := time.After(30 * time.Second); in < 10*queue.Turn+more; {
		select {
		case <-n.intake.wake:
			for _, piece := range taken(n.intake) {
				in += len(piece) - 1
			}
		case <-deadline:
			t.Fatalf("%d requests were taken, want %d", in, 10*queue.Turn+more)
		}
	}
	for range more {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	submit(t, c, 1, queue.Turn)
	close(n.done)
	if err := c.Submit(t.Context(), requests(1, 1)); !errors.Is(err, ErrStopped) {
		t.Errorf("a submission to a node that stopped: %v", err)
	}
}

// Connections take turns of equally many requests, however they submit them.
func TestConnectionsTakeTurns(t *testing.T) {
	n := &Node{intake: newIntake(), done: make(chan struct{})}
	one, two, three := newConn(n, 1), newConn(n, 2), newConn(n, 3)
	submit(t, one, 1, 2*queue.Turn+1)
	submit(t, two, 1, 1)
	submit(t, two, 2, queue.Turn-2)
	submit(t, two, queue.Turn, 2*queue.Turn)
	submit(t, three, 1, 1)
	var order [][2]uint64 // connection, and requests in a row
	for _, piece := range taken(n.intake) {
		if last := len(order) - 1; last >= 0 && order[last][0] == piece[0] {
			order[last][1] += uint64(len(piece) - 1)
			continue
		}
		order = append(order, [2]uint64{piece[0], uint64(len(piece) - 1)})
	}
	want := [][2]uint64{{1, queue.Turn}, {2, queue.Turn}, {3, 1}, {1, queue.Turn}, {2, queue.Turn}, {1, 1}, {2, queue.Turn - 1}}
	if !slices.Equal(order, want) {
		t.Errorf("taken %v, want %v", order, want)
	}
}

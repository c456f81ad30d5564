package node

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/registry"
)

// flooder submits as fast as it is allowed to and never waits for an answer.
type flooder struct{ answered *atomic.Uint64 }

func (f flooder) Deliver(replies []Reply) { f.answered.Add(uint64(len(replies))) }
func (f flooder) Depose()                 {}

// frames are what a flooder sends: 1,024 requests that differ in kind by its number.
func frame(n int, id registry.SessionID, from uint64) (commands []registry.Command) {
	ops := []registry.Op{registry.OpAcquire, registry.OpRenew, registry.OpRelease, registry.OpCancel}
	for sequence := from; sequence < from+1024; sequence++ {
		commands = append(commands, registry.Command{
			Op: ops[n%len(ops)], Session: id, Sequence: sequence, Low: sequence, Name: fmt.Sprint("flood-", n), Try: true, Hold: 1,
		})
	}
	return commands
}

// While 16 connections flood, a session with a TTL of 1 s survives and is served, because
// renewals come before all other requests.
func TestFloodEndsNobodysSession(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1) // so that no election on a busy machine ends the test
	leader := c.leader()
	ctx, cancel := context.WithCancel(c.ctx)
	var answered atomic.Uint64
	var flooding sync.WaitGroup
	for n := range 16 {
		id := registry.SessionID{0: 9}
		binary.BigEndian.PutUint64(id[8:], uint64(n))
		conn, err := leader.Connect(c.ctx, flooder{&answered})
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Submit(c.ctx, []registry.Command{{Op: registry.OpOpen, Session: id, Sequence: 1, TTL: int64(time.Minute)}}); err != nil {
			t.Fatal(err)
		}
		flooding.Go(func() {
			for sequence := uint64(2); conn.Submit(ctx, frame(n, id, sequence)) == nil; sequence += 1024 {
			}
		})
	}
	defer flooding.Wait()
	defer cancel()
	victim := newRecorder()
	conn, err := leader.Connect(c.ctx, victim)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(command registry.Command) time.Duration {
		t.Helper()
		asked := time.Now()
		if err := conn.Submit(c.ctx, []registry.Command{command}); err != nil {
			t.Fatal(err)
		}
		select {
		case reply := <-victim.replies:
			if reply.Sequence != command.Sequence || reply.Result.Code != registry.OK {
				t.Fatalf("request %d is answered %d: %s", command.Sequence, reply.Result.Code, reply.Result.Message)
			}
		case <-victim.deposed:
			t.Fatal("the leader lost its place under the flood")
		case <-time.After(testTimeout):
			t.Fatalf("request %d has no answer", command.Sequence)
		}
		return time.Since(asked)
	}
	ask(registry.Command{Op: registry.OpOpen, Session: owner, Sequence: 1, TTL: int64(time.Second)})
	keeper, err := leader.Connect(c.ctx, flooder{new(atomic.Uint64)})
	if err != nil {
		t.Fatal(err)
	}
	flooding.Go(func() {
		tick := time.NewTicker(250 * time.Millisecond) // as the client does
		defer tick.Stop()
		for sequence := uint64(1 << 32); ctx.Err() == nil; sequence++ {
			_ = keeper.Submit(ctx, []registry.Command{{Op: registry.OpRenew, Session: owner, Sequence: sequence}})
			<-tick.C
		}
	})
	longest, sequence := time.Duration(0), uint64(1)
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		for _, command := range []registry.Command{
			{Op: registry.OpAcquire, Name: "victim"}, {Op: registry.OpRelease, Hold: sequence + 1},
		} {
			sequence++
			command.Session, command.Sequence, command.Low = owner, sequence, sequence
			longest = max(longest, ask(command))
		}
	}
	if stats := leader.Metrics().Stats(); stats.Sessions != 17 {
		t.Errorf("the figures say %d sessions, there are 17", stats.Sessions)
	}
	t.Logf("the longest of %d requests took %v, beside %d answers to others", sequence, longest, answered.Load())
}

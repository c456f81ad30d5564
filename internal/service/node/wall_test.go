package node

import (
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/registry"
)

func TestStepsBackAreNoticed(t *testing.T) {
	const second = int64(time.Second)
	var w wallClock
	for i, c := range []struct {
		wall, boot int64
		want       time.Duration
	}{
		{1000 * second, 5 * second, 0},
		{1001 * second, 6 * second, 0},
		{2000 * second, 7 * second, 0}, // set forward
		{1900 * second, 8 * second, 101 * time.Second},
		{1901*second - second/2, 9 * second, 0}, // slewed
	} {
		if got := w.step(c.wall, c.boot); got != c.want {
			t.Errorf("reading %d: set back by %v, want %v", i, got, c.want)
		}
	}
}

// TestClockSetBackChangesNothing sets the wall clock of a leader back by a day.
func TestClockSetBackChangesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	c.peers[1] = "127.0.0.1:0"
	var back atomic.Int64
	var said journal
	cfg := c.config(1, listen(t))
	cfg.wall = func() int64 { return time.Now().UnixNano() - back.Load() }
	cfg.Log = slog.New(slog.NewTextHandler(&said, nil))
	n, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.nodes[1] = n
	c.ok(open(1))
	before := c.ok(acquire(2, "a"))
	c.until("the clock was read", func() bool { return said.has("leads") })
	back.Store(int64(24 * time.Hour))
	after := c.ok(acquire(3, "b"))
	if after.Fence <= before.Fence {
		t.Errorf("fence %d after %d", after.Fence, before.Fence)
	}
	state, err := n.Read(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	locks, _ := state.List(registry.Lock, "", "", 10, 0)
	if len(locks) != 2 || locks[1].Holders[0].Since > locks[0].Holders[0].Since-int64(23*time.Hour) {
		t.Errorf("the times shown do not follow the clock: %+v", locks)
	}
	c.until("it is told", func() bool { return said.has("set back") })
}

// journal is a log that can be searched.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) has(words string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Contains(j.text.String(), words)
}

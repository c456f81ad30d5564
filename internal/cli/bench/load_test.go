package bench

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// book counts the clients inside each lock. The first client stays until company clients
// have been inside at the same time.
type book struct {
	company int
	met     chan struct{} // closed when they have

	mu     sync.Mutex
	inside map[string]int
	most   map[string]int
}

func newBook(company int) *book {
	return &book{company: company, met: make(chan struct{}), inside: make(map[string]int), most: make(map[string]int)}
}

func (b *book) note(name string, change int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.most[name]
	b.inside[name] += change
	b.most[name] = max(before, b.inside[name])
	if before < b.company && b.most[name] == b.company {
		close(b.met)
	}
}

func (b *book) keep(lock Locker) Locker {
	return func(ctx context.Context, name string) (Release, error) {
		release, err := lock(ctx, name)
		if err != nil {
			return nil, err
		}
		b.note(name, 1)
		if b.company > 1 {
			select {
			case <-b.met:
			case <-time.After(10 * time.Second):
			}
		}
		return func(ctx context.Context) error {
			b.note(name, -1)
			return release(ctx)
		}, nil
	}
}

// TestWorkloads lays every workload on a cluster and looks how many were inside.
func TestWorkloads(t *testing.T) {
	cluster := servertest.Start(t, 1)
	connections, err := Connect(t.Context(), conclave.Config{Servers: cluster.Addresses()}, 2)
	for _, c := range connections {
		t.Cleanup(func() { c.Close() })
	}
	if err != nil {
		t.Fatal(err)
	}
	for workload, want := range map[string]struct{ names, least, most int }{
		Uncontended: {6, 0, 1}, Contended: {1, 0, 1}, Shared: {1, 2, 6}, Semaphore: {1, 2, 3},
	} {
		waits := workload == Contended || workload == Semaphore
		// Everybody gets a turn soon, and later on a busy machine.
		for d := 300 * time.Millisecond; ; d *= 2 {
			b := newBook(want.least)
			l := Load{Workload: workload, Limit: 3, Duration: d}
			for i := range 6 {
				l.Clients = append(l.Clients, b.keep(LockerOf(connections[i%2], workload, 3)))
			}
			f, err := l.Run(t.Context())
			if err != nil || f.Failed > 0 {
				t.Fatalf("%s: %d failed, %v, %v", workload, f.Failed, f.Failure, err)
			}
			for name, most := range b.most {
				if most > want.most {
					t.Errorf("%s: %d were in %s together, want %d at most", workload, most, name, want.most)
				}
			}
			if !waits && f.Handoff(50) != nil {
				t.Errorf("%s: the hand-off is %v", workload, f.Handoff(50))
			}
			together := 0
			for _, most := range b.most {
				together = max(together, most)
			}
			if len(b.most) == want.names && together >= want.least && waits == (f.Handoff(50) != nil) &&
				f.Done > 0 && f.Acquire(50) != nil && len(f.Entries) == 6 && f.MaxMin() != nil && f.Rate() > 0 {
				break
			}
			if d > 10*time.Second {
				t.Fatalf("%s: %d locks of %d, %d of %d together; %+v", workload, len(b.most), want.names, together, want.least, f)
			}
		}
	}
}

// TestLoadSurvivesTheLeader takes the leader away under the load.
func TestLoadSurvivesTheLeader(t *testing.T) {
	cluster := servertest.Start(t, 3)
	connections, err := Connect(t.Context(), conclave.Config{Servers: cluster.Addresses()}, 1)
	for _, c := range connections {
		t.Cleanup(func() { c.Close() })
	}
	if err != nil {
		t.Fatal(err)
	}
	before, after := 0, 0
	first := cluster.Leader()
	lock := LockerOf(connections[0], Uncontended, 0)
	f, err := Load{Workload: Uncontended, Duration: 3 * time.Second, Clients: []Locker{func(ctx context.Context, name string) (Release, error) {
		if before++; before == 20 {
			cluster.Stop(first)
		}
		if before > 20 {
			after++
		}
		return lock(ctx, name)
	}}}.Run(t.Context())
	if err != nil || after < 20 || f.Done < 20 {
		t.Fatalf("%d operations before the leader went and %d after, %d failed, %v, %v", before-after, after, f.Failed, f.Failure, err)
	}
}

func TestRun(t *testing.T) {
	cluster := servertest.Start(t, 1)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Config{
		Client: conclave.Config{Servers: cluster.Addresses()}, Workload: Uncontended, Clients: 4, Connections: 2,
		Duration: 200 * time.Millisecond, Binary: binary, Dir: t.TempDir(), glance: 100 * time.Millisecond,
	})
	if err != nil || r.Remark != "" || r.RPCMSP50 <= 0 || r.FdatasyncMSP50 != 0.25 || r.OpsPerSecond <= 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if r.HandoffMSP50 != nil || r.Ratio() <= 0 || !strings.Contains(r.Text(), "times (fdatasync + round trip)") {
		t.Errorf("%+v", r)
	}
}

var errRefused = errors.New("refused")

func free(context.Context) error { return nil }

// TestFailuresAreCounted refuses a third of the operations, half of them at the
// release.
func TestFailuresAreCounted(t *testing.T) {
	tries := 0
	lock := func(context.Context, string) (Release, error) {
		switch tries++; tries % 6 {
		case 0:
			return nil, errRefused
		case 3:
			return func(context.Context) error { return errRefused }, nil
		}
		return free, nil
	}
	f, err := Load{Workload: Uncontended, Clients: []Locker{lock}, Duration: 200 * time.Millisecond}.Run(t.Context())
	if err != nil || f.Failed == 0 || f.Failure != errRefused {
		t.Fatalf("%d failed, %v, %v", f.Failed, f.Failure, err)
	}
	if f.Done+f.Failed != int64(tries) || f.Failed != int64(tries/3) {
		t.Errorf("%d tries, %d done, %d failed", tries, f.Done, f.Failed)
	}
	if f.MaxMin() != nil {
		t.Error("one client is fair to itself")
	}
}

func TestNothingDoneIsAnError(t *testing.T) {
	refuse := func(context.Context, string) (Release, error) { return nil, errRefused }
	wait := func(ctx context.Context, _ string) (Release, error) { <-ctx.Done(); return nil, ctx.Err() }
	l := Load{Workload: Uncontended, Duration: 20 * time.Millisecond}
	l.Clients = []Locker{refuse}
	if _, err := l.Run(t.Context()); !errors.Is(err, errRefused) {
		t.Error(err)
	}
	l.Clients = []Locker{wait}
	if _, err := l.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "20ms") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.Clients = slices.Repeat([]Locker{wait}, 3)
	if _, err := l.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestMeasuredUndisturbed: figures of a regime during which an epoch began, or a session ended, do not
// count, but a cluster that is never quiet is measured all the same.
func TestMeasuredUndisturbed(t *testing.T) {
	for _, c := range []struct {
		disturbed, attempts int
		want                float64
		sessions            int // of no client, instead of an epoch
	}{{0, 1, 1, 0}, {1, 2, 2, 0}, {2, 3, 3, 0}, {9, 3, 3, 0}, {1, 2, 2, 1}} {
		r := &guardRun{guardsBench: &guardsBench{GuardsConfig: GuardsConfig{Progress: io.Discard}}, messages: []float64{7}}
		attempt := 0
		err := r.undisturbed(t.Context(), func(context.Context) error {
			r.began = r.epoch
			if attempt++; attempt <= c.disturbed && c.sessions > 0 {
				r.sessions["of a client that has another one now"] = true
			} else if attempt <= c.disturbed {
				r.epoch++
			}
			r.messages = append(r.messages, float64(attempt))
			return nil
		})
		if err != nil || attempt != c.attempts || !slices.Equal(r.messages, []float64{7, c.want}) {
			t.Errorf("disturbed %d times: %d attempts, messages %v, %v", c.disturbed, attempt, r.messages, err)
		}
	}
}

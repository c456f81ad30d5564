package nemesis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/local"
	"github.com/conclave-io/conclave/internal/longrun"
)

// guarding has the algorithms that guard locks while links are cut: one that asks a coordinator, one
// that asks all members, one that asks some of them, and two with a token.
var guarding = []string{"central", "ricart-agrawala", "maekawa", "suzuki-kasami", "raymond"}

// TestLiveCuts cuts a home off from the other servers, but not from its clients. It also cuts two homes
// off from each other only. A client that loses a lock must know it before another client gets the
// lock, and locks must be granted again within seconds. With LONG, it makes CUTS (20) cuts of each kind.
func TestLiveCuts(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("takes minutes; set LONG=1")
	}
	cuts := 20
	fmt.Sscan(os.Getenv("CUTS"), &cuts)
	for _, line := range runNemesis(t, plan{Cuts: cuts}) {
		if name, figures, found := strings.Cut(line, ": noted: "); found {
			var note []longrun.Figure
			for _, figure := range strings.Split(figures, "; ") {
				var f longrun.Figure
				words := strings.SplitN(figure, " ", 2)
				if _, err := fmt.Sscan(words[0], &f.Value); err != nil {
					t.Fatal(err)
				}
				f.Name = words[1]
				note = append(note, f)
			}
			if err := longrun.Note(name, note...); err != nil {
				t.Error(err)
			}
		}
	}
}

// cutting makes cuts while algorithms guard locks. The clients run at the router, so each of them
// reaches all servers, whatever is cut between servers.
type cutting struct {
	plan    plan
	world   *world
	cluster *local.Cluster
	control *conclave.Client
	number  int
	took    map[string][]time.Duration
}

// roundsPerCluster is the number of cuts in one cluster. It is small because a server whose seats expire
// often has to wait for its next seat.
const roundsPerCluster = 4

func runCuts(p plan, w *world) error {
	c := &cutting{plan: p, world: w, took: make(map[string][]time.Duration)}
	for c.number < 2*p.Cuts {
		if err := c.some(); err != nil {
			return err
		}
	}
	for _, kind := range []string{"a home cut off", "two homes cut from each other"} {
		all := c.took[kind]
		slices.Sort(all)
		fmt.Printf("%s: noted: %d cuts; %d locks; %d median until the next entry, ms; %d worst, ms\n",
			kind, p.Cuts, len(all), all[len(all)/2].Milliseconds(), all[len(all)-1].Milliseconds())
	}
	return nil
}

// some makes some cuts in a new cluster.
func (c *cutting) some() (err error) {
	dir := filepath.Join(c.plan.Dir, "said", fmt.Sprint("cluster-", c.number))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	c.cluster, err = local.Start(local.Config{
		Binary: c.plan.Binary, Dir: dir, Hosts: []string{host(1), host(2), host(3)}, Flags: []string{"--insecure", "--access", "open"},
		Via: at,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.cluster.Stop(), os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(context.Background(), roundsPerCluster*testTimeout)
	defer cancel()
	if c.control, err = conclave.Dial(ctx, conclave.Config{Servers: c.cluster.Addresses()}); err != nil {
		return errors.Join(err, c.cluster.Died())
	}
	defer c.control.Close()
	if err := c.cluster.Raise(ctx, c.control, 3); err != nil {
		return err
	}
	for _, algorithm := range guarding {
		if err := c.control.SetGuard(ctx, algorithm+"/", conclave.Use{Algorithm: algorithm}); err != nil {
			return err
		}
	}
	for i := 0; i < roundsPerCluster && c.number < 2*c.plan.Cuts; i++ {
		if err := c.round(ctx); err != nil {
			return fmt.Errorf("cut %d: %w", c.number+1, err)
		}
		c.number++
	}
	return nil
}

// round makes one cut: all links of a server to the others, or the link between two servers.
func (c *cutting) round(ctx context.Context) error {
	if err := until(ctx, c.open); err != nil {
		return err
	}
	kind, victim := "a home cut off", c.number/2%servers+1
	a, b := others(victim)[0], others(victim)[1]
	ways := []way{{victim, a}, {a, victim}, {victim, b}, {b, victim}}
	if c.number%2 == 1 {
		kind, ways = "two homes cut from each other", ways[:2]
	}
	clients := make(map[int]*conclave.Client)
	for id := 1; id <= servers; id++ {
		client, err := conclave.Dial(ctx, conclave.Config{Servers: c.cluster.Addresses(), Home: c.cluster.Addresses()[id-1]})
		if err != nil {
			return err
		}
		defer client.Close()
		clients[id] = client
	}
	var held []*conclave.Lock
	entered := make(chan next, len(guarding))
	for _, algorithm := range guarding {
		l, err := clients[victim].Lock(ctx, fmt.Sprint(algorithm, "/", c.number))
		if err != nil {
			return err
		}
		held = append(held, l)
		go c.await(ctx, clients[b], l, entered)
	}
	if err := until(ctx, c.waiting(held)); err != nil {
		return err
	}
	for _, w := range ways {
		if err := c.world.cut(w.from, w.to); err != nil {
			return err
		}
	}
	err := c.judge(ctx, kind, clients, held, entered)
	for _, w := range ways {
		err = errors.Join(err, c.world.mend(w.from, w.to))
	}
	return err
}

// next is the next holder of a lock after a cut.
type next struct {
	name string
	at   time.Time
	knew bool
	late uint64
	err  error
}

func (c *cutting) await(ctx context.Context, client *conclave.Client, held *conclave.Lock, entered chan<- next) {
	l, err := client.Lock(ctx, held.Name())
	n := next{name: held.Name(), at: time.Now(), knew: held.Context().Err() != nil, err: err}
	if err == nil {
		n.late, n.err = l.Fence()
		n.err = errors.Join(n.err, l.Unlock(ctx))
	}
	entered <- n
}

// judge waits for the next entries. If two homes are cut off from each other, only one of them has to
// leave. If the holder's home stays, the holder releases after a while, as it would have without the
// cut. The time until the next entry then counts from that release.
func (c *cutting) judge(ctx context.Context, kind string, clients map[int]*conclave.Client, held []*conclave.Lock, entered <-chan next) error {
	began := time.Now()
	fences := make(map[string]uint64)
	var released sync.Map // by name: when a holder whose home stayed released
	for _, l := range held {
		fence, err := l.Fence()
		if err != nil {
			return err
		}
		fences[l.Name()] = fence
		if kind != "a home cut off" {
			release := time.AfterFunc(2*time.Second, func() {
				released.Store(l.Name(), time.Now())
				if l.Unlock(ctx) != nil {
					released.Delete(l.Name()) // it was lost
				}
			})
			defer release.Stop()
		}
	}
	for range held {
		n := <-entered
		took := n.at.Sub(began)
		if at, stayed := released.Load(n.name); stayed {
			took = n.at.Sub(at.(time.Time))
		}
		if n.err != nil || !n.knew || n.late <= fences[n.name] || took > 10*time.Second {
			return fmt.Errorf("%s: %s: the next entry after %v with fence %d after %d; the holder knew: %v: %w", kind, n.name, took, n.late, fences[n.name], n.knew, n.err)
		}
		c.took[kind] = append(c.took[kind], took)
	}
	return nil
}

// open returns an error until all servers take part.
func (c *cutting) open(ctx context.Context) error {
	v, err := c.control.Homes(ctx)
	if err != nil {
		return err
	}
	for _, m := range v.Members {
		if m.Home == nil || m.Home.State != "OPEN" || m.Home.Epoch != v.Epoch || m.Home.Remaining == 0 {
			return fmt.Errorf("server %d is not open", m.Server)
		}
	}
	if len(v.Members) != servers {
		return fmt.Errorf("%d servers take part", len(v.Members))
	}
	return nil
}

// waiting returns an error until a client waits for each lock.
func (c *cutting) waiting(held []*conclave.Lock) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, l := range held {
			x, err := c.control.Explain(ctx, l.Name())
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(x.Homes, func(h conclave.AtHome) bool { return h.QueueLength > 0 }) {
				return fmt.Errorf("nobody waits for %s", l.Name())
			}
		}
		return nil
	}
}

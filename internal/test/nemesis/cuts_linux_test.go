package nemesis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/local"
	"github.com/conclave-io/conclave/internal/test/longrun"
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
	noteFigures(t, runNemesis(t, plan{Cuts: cuts}))
}

// noteFigures notes the figures in the output of a director.
func noteFigures(t *testing.T, said []string) {
	t.Helper()
	for _, line := range said {
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

// homes is a cluster in which algorithms guard locks while something happens to one of the homes. The
// clients run at the router, so each of them reaches all servers, whatever is cut between servers.
type homes struct {
	plan    plan
	world   *world
	cluster *local.Cluster
	control *conclave.Client
	dir     string
	took    map[string][]time.Duration // until the next entry, by what happened
}

// roundsPerCluster is the number of rounds in one cluster. It is small because a server whose seats
// expire often has to wait for its next seat.
const roundsPerCluster = 4

// runHomes runs rounds in several clusters, and prints figures for each kind of round.
func runHomes(p plan, w *world, rounds int, round func(h *homes, ctx context.Context, number int) error) error {
	h := &homes{plan: p, world: w, took: make(map[string][]time.Duration)}
	for done := 0; done < rounds; done += roundsPerCluster {
		if err := h.inCluster(done, min(done+roundsPerCluster, rounds), round); err != nil {
			return err
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(h.took)) {
		all := h.took[kind]
		slices.Sort(all)
		fmt.Printf("%s: noted: %d times; %d locks; %d median until the next entry, ms; %d worst, ms\n",
			kind, rounds/len(h.took), len(all), all[len(all)/2].Milliseconds(), all[len(all)-1].Milliseconds())
	}
	return nil
}

// inCluster runs the rounds from first up to last in a new cluster.
func (h *homes) inCluster(first, last int, round func(h *homes, ctx context.Context, number int) error) (err error) {
	dir := filepath.Join(h.plan.Dir, "said", fmt.Sprint("cluster-", first))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	h.dir = dir
	for id := 1; id <= servers; id++ {
		if err := os.WriteFile(clockFile(dir, id), make([]byte, 8), 0o600); err != nil {
			return err
		}
	}
	h.cluster, err = local.Start(local.Config{
		Binary: h.plan.Binary, Dir: dir, Hosts: []string{host(1), host(2), host(3)}, Flags: []string{"--insecure", "--access", "open"},
		Via: func(id int) []string {
			return append([]string{"env", clockVariable + "=" + clockFile(dir, id)}, at(id)...)
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.cluster.Stop(), os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(context.Background(), roundsPerCluster*testTimeout)
	defer cancel()
	if h.control, err = conclave.Dial(ctx, conclave.Config{Servers: h.cluster.Addresses()}); err != nil {
		return errors.Join(err, h.cluster.Died())
	}
	defer h.control.Close()
	if err := h.cluster.Raise(ctx, h.control, 3); err != nil {
		return err
	}
	for _, algorithm := range guarding {
		if err := admin.New(h.control).SetGuard(ctx, algorithm+"/", admin.Use{Algorithm: algorithm}); err != nil {
			return err
		}
	}
	for number := first; number < last; number++ {
		if err := until(ctx, h.open); err != nil {
			return err
		}
		if err := round(h, ctx, number); err != nil {
			return fmt.Errorf("round %d: %w", number+1, err)
		}
	}
	return nil
}

// dialHomes returns a client of each home.
func (h *homes) dialHomes(ctx context.Context) (clients map[int]*conclave.Client, closeAll func(), err error) {
	clients = make(map[int]*conclave.Client)
	closeAll = func() {
		for _, client := range clients {
			client.Close()
		}
	}
	for id := 1; id <= servers; id++ {
		if clients[id], err = conclave.Dial(ctx, conclave.Config{Servers: h.cluster.Addresses(), Home: h.cluster.Addresses()[id-1]}); err != nil {
			delete(clients, id)
			closeAll()
			return nil, nil, err
		}
	}
	return clients, closeAll, nil
}

// cutRound makes one cut: all links of a server to the others, or the link between two servers.
func (h *homes) cutRound(ctx context.Context, number int) error {
	kind, victim := "a home cut off", number/2%servers+1
	a, b := others(victim)[0], others(victim)[1]
	ways := isolated(victim)
	if number%2 == 1 {
		kind, ways = "two homes cut from each other", []way{{victim, a}, {a, victim}}
	}
	clients, closeAll, err := h.dialHomes(ctx)
	if err != nil {
		return err
	}
	defer closeAll()
	var held []*conclave.Lock
	entered := make(chan next, len(guarding))
	for _, algorithm := range guarding {
		l, err := clients[victim].Lock(ctx, fmt.Sprint(algorithm, "/", number))
		if err != nil {
			return err
		}
		held = append(held, l)
		go h.await(ctx, clients[b], l, entered)
	}
	if err := until(ctx, h.waiting(held)); err != nil {
		return err
	}
	if err := h.cutAll(ways); err != nil {
		return err
	}
	return errors.Join(h.judge(ctx, kind, clients, held, entered), h.mendAll(ways))
}

// isolated are the ways between a server and the others.
func isolated(victim int) []way {
	a, b := others(victim)[0], others(victim)[1]
	return []way{{victim, a}, {a, victim}, {victim, b}, {b, victim}}
}

func (h *homes) cutAll(ways []way) error {
	for _, w := range ways {
		if err := h.world.cut(w.from, w.to); err != nil {
			return err
		}
	}
	return nil
}

func (h *homes) mendAll(ways []way) (err error) {
	for _, w := range ways {
		err = errors.Join(err, h.world.mend(w.from, w.to))
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

func (h *homes) await(ctx context.Context, client *conclave.Client, held *conclave.Lock, entered chan<- next) {
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
func (h *homes) judge(ctx context.Context, kind string, clients map[int]*conclave.Client, held []*conclave.Lock, entered <-chan next) error {
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
		h.took[kind] = append(h.took[kind], took)
	}
	return nil
}

// open returns an error until all servers take part.
func (h *homes) open(ctx context.Context) error {
	v, err := admin.New(h.control).Homes(ctx)
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
func (h *homes) waiting(held []*conclave.Lock) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, l := range held {
			x, err := h.control.Explain(ctx, l.Name())
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

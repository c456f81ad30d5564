//go:build linux

package e2e

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/algorithm/served"
	"github.com/conclave-io/conclave/internal/cli/local"
	"github.com/conclave-io/conclave/internal/test/longrun"
)

// role is what the server does that something happens to.
type role struct {
	name                string
	leads, holds, waits bool // it leads; a client of it holds, or waits
	coordinates         bool
	stop, back          func(c *local.Cluster, id int) error
	backBefore          bool // it is back before anybody has the lock
}

func kill(c *local.Cluster, id int) error    { return c.Kill(id) }
func restart(c *local.Cluster, id int) error { return c.Restart(id) }

var roles = []role{
	{name: "home of the holder", holds: true, stop: kill, back: restart},
	{name: "coordinator", coordinates: true, stop: kill, back: restart},
	{name: "home of a waiter", waits: true, stop: kill, back: restart},
	{name: "bystander", stop: kill, back: restart},
	{name: "leader", leads: true, stop: kill, back: restart},
	{name: "home of the holder, back at once", holds: true, backBefore: true, stop: kill, back: restart},
	{name: "home of the holder stands still", holds: true,
		stop: func(c *local.Cluster, id int) error { return c.Signal(id, syscall.SIGSTOP) },
		back: func(c *local.Cluster, id int) error { return c.Signal(id, syscall.SIGCONT) }},
}

// TestFaultsByRole: a server is killed in each of its roles. Within seconds of the kill,
// or of the release if the holder lives, the next client has the lock. A holder that lost
// the lock knows it before. Locks held at other homes are not lost. LONG plays PASSES
// (20) times all that can happen to a server, under all algorithms at a time, and makes
// notes.
func TestFaultsByRole(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("takes a minute a pass; set LONG=1 (TestHomeThatIsGone plays a part of it)")
	}
	passes := 20
	fmt.Sscan(os.Getenv("PASSES"), &passes)
	took := make(map[string][]time.Duration) // by algorithm and role
	for pass := range passes {
		t.Run(fmt.Sprint("pass ", pass+1), func(t *testing.T) { playRoles(t, pass, took) })
	}
	for _, spec := range served.Locks {
		figures := []longrun.Figure{{Name: "faults of each kind", Value: float64(passes)}}
		for _, r := range roles {
			all := took[spec.Name+" "+r.name]
			if slices.Sort(all); len(all) > 0 {
				figures = append(figures, longrun.Figure{Name: r.name + ": median, ms", Value: float64(all[len(all)/2].Milliseconds())},
					longrun.Figure{Name: r.name + ": worst, ms", Value: float64(all[len(all)-1].Milliseconds())})
			}
		}
		t.Log(spec.Name, figures)
		if err := longrun.Note(spec.Name, figures...); err != nil {
			t.Error(err)
		}
	}
}

// playRoles plays each fault once, in a separate cluster, because a server whose seats
// expire often must wait for its next seat.
func playRoles(t *testing.T, pass int, took map[string][]time.Duration) {
	c := guarded(t, 3)
	for _, spec := range served.Locks {
		args := []string{"namespace", "set", spec.Name + "/", "--algorithm", spec.Name}
		if spec.Name == "k-ricart-agrawala" {
			args = append(args, "--option", "k=1")
		}
		tell(t, c, args...)
	}
	control := dial(t, conclave.Config{Servers: c.Addresses()})
	for i, r := range roles {
		waitOpen(t, control)
		p := &play{T: t, cluster: c, control: control, role: r, number: len(roles)*pass + i}
		p.run()
		for name, d := range p.took {
			key := name + " " + r.name
			took[key] = append(took[key], d)
		}
	}
}

func waitOpen(t *testing.T, control *conclave.Client) {
	t.Helper()
	until(t, "all servers are open", func() bool {
		v, err := admin.New(control).Homes(within(t))
		open := func(s admin.Seat) bool { return s.Home != nil && s.Home.State == "OPEN" && s.Home.Epoch == v.Epoch }
		return err == nil && len(v.Members) == 3 && !slices.ContainsFunc(v.Members, func(s admin.Seat) bool { return !open(s) })
	})
}

// play is one thing that happens.
type play struct {
	*testing.T
	cluster *local.Cluster
	control *conclave.Client
	role    role
	number  int
	clients map[int]*conclave.Client
	took    map[string]time.Duration
}

func (p *play) run() {
	victim, home, other := p.cast()
	p.clients, p.took = make(map[int]*conclave.Client), make(map[string]time.Duration)
	for _, id := range []int{victim, home, other} {
		client, err := conclave.Dial(within(p.T), conclave.Config{Servers: p.cluster.Addresses(), Home: p.cluster.Addresses()[id-1]})
		if err != nil {
			p.Fatal(err)
		}
		defer client.Close()
		p.clients[id] = client
	}
	holder, waiters := home, []int{other}
	if p.role.holds {
		holder = victim
	}
	if p.role.waits {
		waiters = append(waiters, victim)
	}
	coordinator := other
	if p.role.coordinates {
		coordinator = victim
	}
	var held, kept []*conclave.Lock
	var queue sync.WaitGroup
	entered := make([]chan grant, len(served.Locks))
	for i, spec := range served.Locks {
		name := coordinatedBy(fmt.Sprintf("%s/%d-", spec.Name, p.number), coordinator)
		held = append(held, lockUnder(p.T, within(p.T), p.clients[holder], name))
		kept = append(kept, lockUnder(p.T, within(p.T), p.clients[home], name+"-kept"))
		entered[i] = make(chan grant, len(waiters))
		for _, id := range waiters {
			queue.Go(func() { p.wait(held[i], id, entered[i]) })
		}
	}
	for i, l := range held {
		until(p.T, "they wait", func() bool {
			x, err := p.control.Explain(within(p.T), l.Name())
			waiting := 0
			for _, h := range x.Homes {
				waiting += int(h.QueueLength)
				if h.Held && int(h.Server) != holder {
					p.Fatalf("%s is held at server %d, not %d", held[i].Name(), h.Server, holder)
				}
			}
			return err == nil && waiting == len(waiters)
		})
	}
	p.strike(victim, held, entered)
	for _, l := range kept {
		if err := l.Context().Err(); err != nil {
			p.Errorf("%s: %s: a hold at another home is lost: %v", p.role.name, l.Name(), context.Cause(l.Context()))
		} else if err := l.Unlock(within(p.T)); err != nil {
			p.Error(err)
		}
	}
	queue.Wait()
}

// cast returns who is struck, and the two others.
func (p *play) cast() (victim, home, other int) {
	var leader int
	until(p.T, "a leader is known", func() bool {
		s, err := admin.New(p.control).Status(within(p.T))
		leader = int(s.Leader)
		return err == nil && leader != 0
	})
	rest := []int{leader%3 + 1, (leader+1)%3 + 1}
	if p.role.leads {
		return leader, rest[0], rest[1]
	}
	at := p.number % 2
	return rest[at], leader, rest[1-at]
}

// coordinatedBy returns a name that the hash gives to a server of three.
func coordinatedBy(prefix string, server int) string {
	for i := 0; ; i++ {
		name := fmt.Sprint(prefix, i)
		hash := fnv.New64a()
		hash.Write([]byte(name))
		if int(hash.Sum64()%3) == server-1 {
			return name
		}
	}
}

// grant is a lock that a waiter got.
type grant struct {
	home int
	at   time.Time
	knew bool // the last holder had left, or knew of its loss
	late uint64
	err  error
}

// wait waits for the lock that somebody holds.
func (p *play) wait(held *conclave.Lock, id int, entered chan<- grant) {
	l, err := p.clients[id].Lock(within(p.T), held.Name())
	g := grant{home: id, at: time.Now(), knew: held.Context().Err() != nil, err: err}
	if err == nil {
		g.late, _ = l.Fence()
		l.Unlock(within(p.T)) // its home may be the one that was struck
	}
	entered <- g
}

// strike lets it happen, and waits for the next entries.
func (p *play) strike(victim int, held []*conclave.Lock, entered []chan grant) {
	fences := make([]uint64, len(held))
	for i, l := range held {
		fences[i] = fenceOf(p.T, l)
	}
	began := time.Now()
	if err := p.role.stop(p.cluster, victim); err != nil {
		p.Fatal(err)
	}
	back := func() {
		if err := p.role.back(p.cluster, victim); err != nil {
			p.Fatal(err)
		}
	}
	if p.role.backBefore {
		back()
	}
	for _, l := range held {
		if !p.role.holds {
			p.free(l)
		}
	}
	for i, l := range held {
		spec := served.Locks[i].Name
		g := <-entered[i]
		for g.home == victim { // it can be back in time
			g = <-entered[i]
		}
		took := g.at.Sub(began)
		p.took[spec] = took
		if g.err != nil || !g.knew || g.late <= fences[i] || took > entersWithin {
			p.Errorf("%s: %s: the next entry after %v with fence %d after %d; the holder knew: %v; %v", p.role.name, l.Name(), took, g.late, fences[i], g.knew, g.err)
		}
	}
	if !p.role.backBefore {
		back()
	}
}

// free releases a lock whose home is running, in the background.
func (p *play) free(l *conclave.Lock) {
	if err := l.Unlock(within(p.T)); err != nil {
		p.Errorf("%s: release: %v", l.Name(), err)
	}
}

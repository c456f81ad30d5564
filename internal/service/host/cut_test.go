package host

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/served"
	"github.com/conclave-io/conclave/process"
)

var cutSeed = flag.Int64("cutseed", -1, "run the cuts of the schedule of this seed only, and print it")

// cutter has servers of a world ask for cuts, and judges each.
type cutter struct {
	random *rand.Rand
	asked  map[cutKey]string // prefixes

	complete, aborted, out int
	names, moving, started int // names of complete cuts, messages on their way, machines that had to be made
}

type cutKey struct{ server, number uint64 }

// bearers returns the algorithms with one token.
func bearers() (specs []*process.Spec) {
	for _, s := range served.Locks {
		if _, ok := s.New(0, configOf(s)).(process.Bearer); ok {
			specs = append(specs, s)
		}
	}
	return specs
}

func configOf(s *process.Spec) *process.Config {
	c := &process.Config{N: 1}
	switch s.Needs.Topology {
	case process.Tree:
		c.Topology.Parent = process.BinaryTree(1)
	case process.Quorums:
		c.Topology.Quorums = process.VotingSets(1)
	}
	return c
}

// TestCuts: each cut has one token of each name, at the machines and on the lanes
// together, and the invariants of the algorithms hold in it. Meanwhile messages are
// delayed, cut off and sent again, and cuts begin again.
func TestCuts(t *testing.T) {
	specs := bearers()
	if len(specs) != 6 {
		t.Fatalf("%d algorithms have a token", len(specs))
	}
	if *cutSeed >= 0 {
		w, _ := withCuts(specs, uint64(*cutSeed), true)
		t.Log(w.trace)
		if w.bad != "" {
			t.Fatal(w.bad)
		}
		return
	}
	var sum cutter
	many := max(60, *seeds/4)
	for s := range many {
		w, c := withCuts(specs, s, false)
		if w.bad != "" {
			t.Fatalf("seed %d: %s: %s", s, w.spec.Name, w.bad)
		}
		sum.complete, sum.aborted, sum.out = sum.complete+c.complete, sum.aborted+c.aborted, sum.out+c.out
		sum.names, sum.moving, sum.started = sum.names+c.names, sum.moving+c.moving, sum.started+c.started
	}
	t.Logf("%d cuts with %d names and %d messages on their way, %d machines that nobody had needed; %d ended with the epoch, %d were asked of a server without a part",
		sum.complete, sum.names, sum.moving, sum.started, sum.aborted, sum.out)
	n := int(many)
	if sum.complete < n || sum.names < n || sum.moving < n/2 || sum.started < n/4 || sum.aborted < n/4 {
		t.Error("too few of some kind: they do not test much")
	}
}

// withCuts runs the world of a seed with cuts.
func withCuts(specs []*process.Spec, seed uint64, tells bool) (*world, *cutter) {
	w := newWorld(seed, specs[seed%uint64(len(specs))], 1+int(seed/uint64(len(specs))+2)%4, tells)
	w.cutter = &cutter{random: rand.New(rand.NewPCG(seed, 3)), asked: make(map[cutKey]string)}
	w.run(1200)
	return w, w.cutter
}

// ask has a server ask for a cut now and then.
func (c *cutter) ask(w *world, s *server) {
	if c == nil || c.random.IntN(25) != 0 {
		return
	}
	prefix := []string{"", "a/", "a/b/", "c", "a/1"}[c.random.IntN(5)]
	number, err := s.host.Cut(w.now, prefix)
	if err != nil {
		if c.out++; s.host.Member().Rank() != process.None {
			w.fail("server %d: no cut: %v", s.id, err)
		}
		return
	}
	w.say("server %d asks for cut %d of %q", s.id, number, prefix)
	c.asked[cutKey{s.id, number}] = prefix
	w.carryOut(s)
}

// judge judges a cut that has ended.
func (c *cutter) judge(w *world, s *server, end *CutEnd) {
	prefix, known := c.asked[cutKey{s.id, end.Number}]
	delete(c.asked, cutKey{s.id, end.Number})
	switch {
	case !known:
		w.fail("server %d: nobody asked for cut %d", s.id, end.Number)
	case end.Err == ErrEpochOver:
		c.aborted++
		return
	case end.Err != nil:
		w.fail("server %d: cut %d: %v", s.id, end.Number, end.Err)
		return
	}
	c.complete++
	w.say("server %d has cut %d: %+v", s.id, end.Number, end.Cut)
	for i := range end.Cut.Names {
		n := &end.Cut.Names[i]
		c.names++
		c.moving += len(n.Messages)
		for _, m := range n.Machines {
			if !m.Made {
				c.started++
			}
		}
		if !strings.HasPrefix(n.Name, prefix) || !n.OneToken || n.Tokens != 1 || n.Wrong != "" || len(n.Machines) != len(end.Cut.Members) {
			w.fail("cut %d of server %d: %s", end.Number, s.id, c.text(n))
		}
	}
}

func (c *cutter) text(n *CutName) string {
	return fmt.Sprintf("%s has %d tokens, wrong %q: %v; on their way %v", n.Name, n.Tokens, n.Wrong, n.Machines, n.Messages)
}

// A cut shows the holder of a name, the state of each machine, and the messages in
// flight. It is refused if it is too large, or if a server takes no part.
func TestCutOfALock(t *testing.T) {
	spec := served.Lock("suzuki-kasami")
	w := newWorld(1, spec, 3, false)
	w.cutter = &cutter{random: rand.New(rand.NewPCG(1, 1)), asked: make(map[cutKey]string)}
	if _, err := New(Config{Server: 9}).Cut(w.now, ""); err != ErrOut {
		t.Errorf("a server without a seat says %v", err)
	}
	for range 50 {
		w.round()
	}
	for _, s := range w.servers {
		w.want(s, place{0, "a/1"}, false)
	}
	for range 3 { // the requests arrive, and the token at the first that asked
		for _, from := range w.servers {
			for _, to := range w.servers {
				w.pass(from.id, to.id)
			}
		}
	}
	end := w.cutNow(t, 1, "a/")
	if end.Err != nil || len(end.Cut.Names) != 1 || !slices.Equal(end.Cut.Members, []uint64{1, 2, 3}) {
		t.Fatalf("got %+v", end)
	}
	name := end.Cut.Names[0]
	held := 0
	for i, m := range name.Machines {
		if m.Server != uint64(i)+1 || !m.Made || m.State[0].Name != "st" {
			t.Errorf("got %+v", m)
		}
		if (m.State[0].String() == "IN") != (m.Holder[0] != 0) {
			t.Errorf("a machine is %v, and %x holds the lock", m.State[0], m.Holder)
		}
		if m.Holder[0] != 0 {
			held++
		}
	}
	if held != 1 || name.Algorithm != spec.Name || name.Tokens != 1 {
		t.Errorf("got %+v", name)
	}

	first := w.servers[0].host
	for i := range maxCutNames + 1 {
		in := first.machines.instance(fmt.Sprintf("a/many/%d", i))
		first.machines.make(in)
	}
	if end := w.cutNow(t, 2, "a/m"); end.Err == nil || !strings.Contains(end.Err.Error(), "use a longer prefix") {
		t.Errorf("a cut of too many names ends with %v", end.Err)
	}
	if end := w.cutNow(t, 2, "a/many/7"); end.Err != nil || len(end.Cut.Names) != 111 {
		t.Errorf("a cut of some of them: %v", end.Err)
	}
}

// cutNow asks for a cut, and delivers what is on its way.
func (w *world) cutNow(t *testing.T, server uint64, prefix string) CutEnd {
	t.Helper()
	s := w.servers[server-1]
	number, err := s.host.Cut(w.now, prefix)
	if err != nil {
		t.Fatal(err)
	}
	w.cutter.asked[cutKey{s.id, number}] = prefix
	w.ended = nil
	for range 20 {
		w.carryOut(s)
		for _, from := range w.servers {
			for _, to := range w.servers {
				w.pass(from.id, to.id)
			}
		}
	}
	if len(w.ended) != 1 || w.ended[0].Number != number {
		t.Fatalf("%v ended, not only cut %d", w.ended, number)
	}
	return w.ended[0]
}

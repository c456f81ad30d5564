package majority

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

// cost returns a formula that Spec claims under the given condition.
func cost(t *testing.T, metric process.Metric, regime process.Regime, mode, when string) *process.Cost {
	t.Helper()
	for i, c := range Spec.Claims.Costs {
		if c.Metric == metric && c.Regime == regime && c.Mode == mode && strings.HasPrefix(c.When, when) {
			return &Spec.Claims.Costs[i]
		}
	}
	t.Fatalf("no %s is claimed in regime %s, mode %s", metric, regime, mode)
	return nil
}

func params(c *process.Config) process.Params {
	n, m := Sizes(c)
	return process.Params{N: c.N, Replicas: n, M: m}
}

func TestIdleCosts(t *testing.T) {
	for n := 2; n <= 50; n++ {
		for _, replicas := range []int{0, 1, n/2 + 1, n} {
			for _, mode := range []string{plain, lease} {
				h := newHost(t, n, option("mode", mode), option("replicas", fmt.Sprint(replicas)))
				size, _ := Sizes(h.c)
				for p := range process.ID(n) {
					checkIdle(t, h, mode, p, int(p) < size)
				}
			}
		}
	}
}

func checkIdle(t *testing.T, h *host, mode string, p process.ID, own bool) {
	t.Helper()
	asked, before := h.now, h.sent
	h.give(p, process.Acquire)
	h.enter()
	waited := h.now - asked
	for slices.ContainsFunc(h.due, func(d happening) bool { return d.ev.Kind == process.Deliver }) {
		h.next()
	}
	h.leave()
	for h.next() {
	}
	if own && mode == lease {
		return
	}
	when := outsider
	if own {
		when = insider
	} else if want := cost(t, process.ClientDelay, process.Idle, mode, outsider).Exact.Eval(params(h.c)); float64(waited) != want*float64(h.c.D()) {
		t.Errorf("N=%d, %s: process %d waits %d ns, want %v D", h.c.N, mode, p, waited, want)
	}
	want := cost(t, process.MessagesPerEntry, process.Idle, mode, when).Exact.Eval(params(h.c))
	if got := float64(h.sent - before); got != want {
		t.Errorf("N=%d, %s: %v messages for an entry of process %d, want %v", h.c.N, mode, got, p, want)
	}
}

func TestSaturatedCosts(t *testing.T) {
	for clients := 2; clients <= 10; clients++ {
		for _, replicas := range []int{1, 3, 4, 10} {
			h := newHost(t, replicas+clients, option("replicas", fmt.Sprint(replicas)))
			for p := range clients {
				h.give(process.ID(replicas+p), process.Acquire)
			}
			least := cost(t, process.MessagesPerEntry, process.Saturated, plain, "").Lo.Eval(params(h.c))
			delay := cost(t, process.SyncDelay, process.Saturated, plain, "").Lo.Eval(params(h.c)) * float64(h.c.D())
			for range 50 {
				p := h.enter()
				left := h.now
				h.leave()
				h.give(p, process.Acquire)
				h.enter()
				if float64(h.entered-left) < delay {
					t.Errorf("%d replicas, %d clients: synchronization delay %d ns", replicas, clients, h.entered-left)
				}
			}
			if got := float64(h.sent) / float64(h.entries); got < least {
				t.Errorf("%d replicas, %d clients: %v messages per entry, at least %v are claimed", replicas, clients, got, least)
			}
		}
	}
}

// TestResets: while one client is inside, coordinators that voted for it forget.
// Nobody else can enter as long as fewer than 2m-n do; with 2m-n there are runs
// in which somebody does.
func TestResets(t *testing.T) {
	for _, size := range []struct{ replicas, votes int }{{3, 2}, {4, 3}, {5, 4}, {7, 4}, {6, 6}} {
		margin, broken := 2*size.votes-size.replicas, 0
		for seed := range int64(200) {
			if resetWalk(t, seed, size.replicas, size.votes, margin-1) {
				t.Fatalf("seed %d: two are inside after %d resets, %d of %d votes", seed, margin-1, size.votes, size.replicas)
			}
			if resetWalk(t, seed, size.replicas, size.votes, margin) {
				broken++
			}
		}
		if broken == 0 {
			t.Errorf("%d resets never led to two inside, %d of %d votes", margin, size.votes, size.replicas)
		}
	}
}

// resetWalk lets three clients ask on links that reorder, with timers that run
// out whenever they like. When the first is inside, some of those who voted for
// it are reset. It reports whether a second one enters before the first leaves.
func resetWalk(t *testing.T, seed int64, replicas, votes, resets int) bool {
	t.Helper()
	h := newHost(t, replicas+3, option("replicas", fmt.Sprint(replicas)), option("votes", fmt.Sprint(votes)))
	h.rng = rand.New(rand.NewSource(seed))
	for p := replicas; p < h.c.N; p++ {
		h.give(process.ID(p), process.Acquire)
	}
	for h.inside == process.None {
		h.any()
	}
	holder := h.machines[h.inside].(*machine)
	for range resets {
		for r := range holder.votes.All() {
			if m := h.machines[r].(*machine); m.holder == holder.self {
				h.reset(r)
				break
			}
		}
	}
	h.inside, h.fence = process.None, 0 // judged here
	for range 300 {
		h.any()
		if h.holders() > 1 {
			return true
		}
	}
	return false
}

// any lets something happen that is due, whenever that should be. Timers seldom
// run out while messages are on their way.
func (h *host) any() {
	if len(h.due) == 0 {
		return
	}
	i := h.rng.Intn(len(h.due))
	if h.due[i].ev.Kind == process.Fire && h.rng.Intn(20) > 0 {
		i = max(0, slices.IndexFunc(h.due, func(d happening) bool { return d.ev.Kind == process.Deliver }))
	}
	h.due[i].at = 0
	h.next()
}

func (h *host) holders() (count int) {
	for _, m := range h.machines {
		if m.(*machine).phase == inside {
			count++
		}
	}
	return count
}

// reset is R8. What was on its way to or from the old incarnation is lost.
func (h *host) reset(p process.ID) {
	h.due = slices.DeleteFunc(h.due, func(d happening) bool {
		return d.to == p || d.ev.Message != nil && d.ev.Message.From == p
	})
	disk := process.AppendDurable(nil, h.machines[p])
	h.machines[p] = Spec.New(p, h.c)
	if err := process.DecodeDurable(disk, h.machines[p], h.c.N); err != nil {
		h.t.Fatal(err)
	}
	h.give(p, process.Restart)
}

// TestBackoff: each failed attempt doubles the range of the wait, up to 2^6, and a
// new request begins anew.
func TestBackoff(t *testing.T) {
	h := newHost(t, 5)
	limit := func() process.Duration {
		h.fx.Begin(4, nil)
		h.machines[4].Step(&process.Event{Kind: process.Fire, Timer: answersTimer}, &h.fx)
		last := *h.fx.At(h.fx.Len() - 1)
		if last.Timer != backoffTimer || last.Lo != 1 {
			t.Fatalf("the last effect is %+v, want the back-off", last)
		}
		h.step(4, process.Event{Kind: process.Fire, Timer: backoffTimer})
		return last.Hi
	}
	for request := range 2 {
		h.give(4, process.Acquire)
		for k := 1; k <= 8; k++ {
			want := (4*h.c.D() + h.c.E()) << min(k, 6)
			if got := limit(); got != want {
				t.Errorf("request %d: back-off up to %d ns after %d failed attempts, want %d", request+1, got, k, want)
			}
		}
		h.give(4, process.Cancel)
	}
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
		"replicas is 6, it must be at most 5":    {"6", "0"},
		"votes is 2 of 4 replicas, it must be":   {"4", "2"},
		"more than half and at most all: 3 to 4": {"4", "5"},
	}
	for want, sizes := range cases {
		c := &process.Config{N: 5, Options: []process.OptionValue{option("replicas", sizes[0]), option("votes", sizes[1])}}
		if err := Spec.Validate(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, it should say %q", err, want)
		}
	}
}

// TestBase: machines that were forgotten while idle go on above what they used.
func TestBase(t *testing.T) {
	h := newHost(t, 3)
	for range 2 {
		h.give(2, process.Acquire)
		h.enter()
		h.leave()
		for h.next() {
		}
	}
	c := *h.c
	for p, m := range h.machines {
		if !m.(process.Idler).Idle() {
			t.Errorf("process %d is not idle after the entries", p)
		}
		base := process.HighWater(m)
		c.Base.Clock, c.Base.Fence = max(c.Base.Clock, base.Clock), max(c.Base.Fence, base.Fence)
	}
	for p := range h.machines {
		h.machines[p] = Spec.New(process.ID(p), &c)
	}
	h.give(2, process.Acquire)
	h.enter()
	if m := h.machines[2].(*machine); m.fence != 3 || m.a != 3 {
		t.Errorf("the next entry has fence %s and attempt %d, want 3 and 3", m.fence, m.a)
	}
}

func TestEntryDoesNotAllocate(t *testing.T) {
	for _, mode := range []string{plain, lease} {
		h := newHost(t, 8, option("mode", mode))
		links := make([]process.Message, 0, 64)
		var msg process.Message
		acquire, release := process.Event{Kind: process.Acquire}, process.Event{Kind: process.Release}
		deliver := process.Event{Kind: process.Deliver, Message: &msg}
		entries := 0
		step := func(p process.ID, ev *process.Event) {
			h.fx.Begin(p, nil)
			h.machines[p].Step(ev, &h.fx)
			for i := range h.fx.Len() {
				switch e := h.fx.At(i); e.Kind {
				case process.EffectSend:
					links = append(links, *h.fx.Message(e))
				case process.EffectGrant:
					entries++
				}
			}
		}
		settle := func() {
			for len(links) > 0 {
				msg = links[0]
				links = links[:copy(links, links[1:])]
				step(msg.To, &deliver)
			}
		}
		entry := func() {
			step(7, &acquire)
			settle()
			step(7, &release)
			settle()
		}
		if allocs := testing.AllocsPerRun(200, entry); allocs != 0 || entries < 200 {
			t.Errorf("%s: an entry allocates %v times; %d entries", mode, allocs, entries)
		}
	}
}

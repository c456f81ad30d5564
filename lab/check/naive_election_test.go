package check_test

import (
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// ballot is a state of an election in a world with crashes, in a simple and slow form,
// like world.
type ballot struct {
	procs             []voter
	links             map[[2]process.ID]string // messages, each encoded and quoted
	crashes, timeouts int                      // so far
}

type voter struct {
	state         string
	timers        string // names of those that are armed, as bits
	down, reached bool
	calls         int
	leader        process.ID
	term          process.Term
}

func (b *ballot) clone() *ballot {
	c := *b
	c.procs = append([]voter{}, b.procs...)
	c.links = map[[2]process.ID]string{}
	for k, q := range b.links {
		c.links[k] = q
	}
	return &c
}

// polls explores ballots recursively and keeps each as text.
type polls struct {
	t    *testing.T
	cfg  *check.Config
	seen map[string]bool
}

// explore searches on from a state that no caller changes any more.
func (n *polls) explore(b *ballot) {
	text := fmt.Sprintf("%v %q %d %d", b.procs, b.links, b.crashes, b.timeouts)
	if n.seen[text] {
		return
	}
	n.seen[text] = true
	for p := range process.ID(len(b.procs)) {
		v := &b.procs[p]
		if v.down {
			continue
		}
		if v.calls < 1 {
			c := b.clone()
			c.procs[p].calls++
			n.step(c, p, process.Event{Kind: process.Campaign})
		}
		if v.leader != process.None && b.procs[v.leader].down {
			n.step(b.clone(), p, process.Event{Kind: process.Campaign})
		}
		for t := range process.Timer(len(v.timers)) {
			if v.timers[t] == '1' && len(b.links) == 0 && b.timeouts < n.cfg.Timeouts {
				c := b.clone()
				c.timeouts++
				c.procs[p].timers = set(v.timers, int(t), '0')
				n.step(c, p, process.Event{Kind: process.Fire, Timer: t})
			}
		}
		if b.crashes < n.cfg.Crashes {
			c := b.clone()
			c.crash(p)
			n.explore(c)
		}
	}
	for link := range b.links {
		n.deliver(b.clone(), link)
	}
}

func set(bits string, i int, to byte) string { return bits[:i] + string(to) + bits[i+1:] }

// crash keeps only that the process has called. Messages to it are lost.
func (b *ballot) crash(p process.ID) {
	b.crashes++
	b.procs[p] = voter{down: true, calls: b.procs[p].calls, leader: process.None}
	for q := range process.ID(len(b.procs)) {
		delete(b.links, [2]process.ID{q, p})
	}
}

func (n *polls) deliver(b *ballot, link [2]process.ID) {
	var first string
	rest := b.links[link]
	if _, err := fmt.Sscanf(rest, "%q", &first); err != nil {
		n.t.Fatal(err)
	}
	if b.links[link] = rest[len(fmt.Sprintf("%q", first)):]; b.links[link] == "" {
		delete(b.links, link)
	}
	var m process.Message
	if err := m.DecodeRaw([]byte(first), len(b.procs)); err != nil {
		n.t.Fatal(err)
	}
	to := &b.procs[link[1]]
	to.reached = to.reached || n.cfg.Spec.Message(0, m.Type).Class == process.Protocol
	n.step(b, link[1], process.Event{Kind: process.Deliver, Message: &m})
}

// step takes an event and searches on from the new state, also with a crash after some of
// the sends.
func (n *polls) step(b *ballot, p process.ID, ev process.Event) {
	m := n.cfg.Spec.New(p, &n.cfg.Process)
	if s := b.procs[p].state; s != "" {
		if err := process.DecodeState([]byte(s), m, len(b.procs)); err != nil {
			n.t.Fatal(err)
		}
	}
	var fx process.Effects
	fx.Begin(p, nil)
	m.Step(&ev, &fx)
	b.procs[p].state = string(process.AppendState(nil, m))
	sent := 0
	for i := range fx.Len() {
		if e := fx.At(i); e.Kind != process.EffectSend {
			b.procs[p].note(e)
			continue
		}
		if sent++; sent > 1 && b.crashes < n.cfg.Crashes {
			c := b.clone()
			c.crash(p)
			n.explore(c)
		}
		b.send(fx.Message(fx.At(i)))
	}
	n.explore(b)
}

func (v *voter) note(e *process.Effect) {
	switch e.Kind {
	case process.EffectArm:
		v.timers = set(v.timers, int(e.Timer), '1')
	case process.EffectDisarm:
		v.timers = set(v.timers, int(e.Timer), '0')
	case process.EffectElect:
		v.leader, v.term = e.Peer, e.Term
	}
}

func (b *ballot) send(m *process.Message) {
	if !b.procs[m.To].down {
		b.links[[2]process.ID{m.From, m.To}] += fmt.Sprintf("%q", m.AppendRaw(nil))
	}
}

// TestNaiveElections: an explorer that shares no code with the checker counts the same
// states when processes crash, between two steps and within one, and others detect it.
func TestNaiveElections(t *testing.T) {
	for _, b := range []bounds{
		{name: "chang-roberts", n: 3, entries: 1},
		{name: "chang-roberts", n: 3, entries: 1, change: crashed(2, 0)},
		{name: "bully", n: 2, entries: 1, change: crashed(1, 2)},
		{name: "bully", n: 3, entries: 1, change: crashed(2, 2)},
	} {
		cfg := b.config(t)
		cfg.Properties = []process.Property{}
		t.Run(b.name+" "+cfg.Bounds(), func(t *testing.T) {
			n := &polls{t: t, cfg: &cfg, seen: map[string]bool{}}
			start := &ballot{links: map[[2]process.ID]string{}}
			for range cfg.Process.N {
				start.procs = append(start.procs, voter{leader: process.None, timers: "00000"})
			}
			for p := range process.ID(cfg.Process.N) {
				m := cfg.Spec.New(p, &cfg.Process)
				var fx process.Effects
				fx.Begin(p, nil)
				m.Step(&process.Event{Kind: process.Start, Incarnation: 1}, &fx)
				start.procs[p].state = string(process.AppendState(nil, m))
			}
			n.explore(start)
			r, err := check.Run(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if r.States != uint64(len(n.seen)) {
				t.Errorf("%d states; an explorer without tricks finds %d", r.States, len(n.seen))
			}
		})
	}
}

package sim

import (
	"fmt"

	"github.com/conclave-io/conclave/algorithm/election/superpeer"
	"github.com/conclave-io/conclave/process"
)

// superPeerJudge returns the judge of a property of super-peers, or nil.
func superPeerJudge(property process.Property) Judge {
	switch property {
	case process.SuperPeerPlace:
		return SuperPeerPlace
	case process.SuperPeerCap:
		return SuperPeerCap
	case process.SuperPeerSpread:
		return SuperPeerSpread
	}
	return nil
}

// settlePeriods is after how many periods without a change the super-peers must be
// in their places: those of a crash to be noticed and its clients forgotten, and
// some more for segments that are halved or joined one bit at a time.
const settlePeriods = 8

// census is what an onlooker knows of super-peers: who is up, since when nothing
// has changed, and whom each node names as the one that serves it.
type census struct {
	w      *World
	sizes  superpeer.Sizes
	server []process.ID
	change process.Duration
}

func newCensus(w *World) *census {
	c := &census{w: w, sizes: superpeer.SizesOf(w.config), server: make([]process.ID, w.config.N)}
	for p := range c.server {
		c.server[p] = process.None
	}
	return c
}

func (c *census) watch(o *Observation) string {
	switch o.Kind {
	case Crashed, Restarted:
		c.server[o.Process] = process.None
		c.change = c.w.now
	case Elected:
		c.server[o.Process] = o.Peer
	}
	return ""
}

// settled reports whether everything has had the time to come right.
func (c *census) settled() bool {
	period := process.Duration(c.sizes.Check) * c.w.config.D()
	return c.w.now-c.change >= settlePeriods*period
}

// start returns where the segment of p begins that has k bits of the identifier.
func (c *census) start(p process.ID, k int) uint64 {
	return uint64(c.w.config.Label(p)) &^ (1<<(c.sizes.Bits-k) - 1)
}

// SuperPeerPlace watches that at the end, if it is quiet by then, everyone who is up
// is served by the first live node of one of its segments, of k bits or more.
func SuperPeerPlace(w *World) Watcher {
	c := newCensus(w)
	return Watcher{Name: "place of super-peers", Property: process.SuperPeerPlace, Watch: c.watch, End: func() string {
		if !c.settled() {
			return ""
		}
		for p := range process.ID(w.config.N) {
			if w.procs[p].down {
				continue
			}
			if text := c.misplaced(p); text != "" {
				return text
			}
		}
		return ""
	}}
}

func (c *census) misplaced(p process.ID) string {
	name := c.w.config.Text
	switch s := c.server[p]; {
	case s == process.None:
		return name(p) + " has no super-peer"
	case c.w.procs[s].down:
		return fmt.Sprintf("%s is served by %s, which is down", name(p), name(s))
	case s > p || c.start(s, c.sizes.Prefix) != c.start(p, c.sizes.Prefix):
		return fmt.Sprintf("%s is served by %s, which does not stand before it in its segment", name(p), name(s))
	case c.server[s] != s:
		return fmt.Sprintf("%s is served by %s, which is no super-peer", name(p), name(s))
	}
	return c.passedOver(p)
}

// passedOver names a live node before the super-peer of p that shares more of the
// identifier with p than that one does.
func (c *census) passedOver(p process.ID) string {
	s := c.server[p]
	k := c.sizes.Prefix
	for k < c.sizes.Bits && c.start(s, k+1) == c.start(p, k+1) {
		k++
	}
	for q := s - 1; q >= 0 && c.start(q, k) == c.start(s, k); q-- {
		if !c.w.procs[q].down {
			return fmt.Sprintf("%s is served by %s, but %s stands before that in all their segments",
				c.w.config.Text(p), c.w.config.Text(s), c.w.config.Text(q))
		}
	}
	return ""
}

// SuperPeerCap watches that no super-peer takes more clients than it may have: those
// that it has told so and has not sent away since.
func SuperPeerCap(w *World) Watcher {
	c := &service{census: newCensus(w), load: make([]int, w.config.N)}
	return Watcher{Name: "cap of super-peers", Property: process.SuperPeerCap, Messages: true, Watch: c.watch}
}

// service is a census by the messages that were sent.
type service struct {
	*census
	load []int
}

func (s *service) watch(o *Observation) string {
	switch o.Kind {
	case Crashed:
		s.leave(o.Process)
		for p := 0; s.load[o.Process] > 0; p++ {
			if s.server[p] == o.Process {
				s.leave(process.ID(p))
			}
		}
	case Elected:
		if o.Peer == o.Process {
			s.leave(o.Process)
		}
	case Sent:
		return s.sent(o)
	}
	return ""
}

func (s *service) sent(o *Observation) string {
	switch s.w.cfg.Spec.Message(o.Message.Layer, o.Message.Type).Name {
	case "ATTACHED":
		s.leave(o.Peer)
		s.server[o.Peer] = o.Process
		s.load[o.Process]++
	case "SPLIT", "REDIRECT":
		if s.server[o.Peer] == o.Process {
			s.leave(o.Peer)
		}
	}
	if s.load[o.Process] > s.sizes.Cap {
		return fmt.Sprintf("%s has %d clients, it may have %d", s.w.config.Text(o.Process), s.load[o.Process], s.sizes.Cap)
	}
	return ""
}

func (s *service) leave(p process.ID) {
	if server := s.server[p]; server != process.None {
		s.load[server]--
		s.server[p] = process.None
	}
}

// SuperPeerSpread watches that at the end, if it is quiet by then, there is a
// super-peer in every segment of k bits in which anybody is up, and only one if all
// of them together need no second.
func SuperPeerSpread(w *World) Watcher {
	c := newCensus(w)
	return Watcher{Name: "spread of super-peers", Property: process.SuperPeerSpread, Watch: c.watch, End: func() string {
		for p := process.ID(0); int(p) < w.config.N && c.settled(); {
			from := p
			up, supers := 0, 0
			for ; int(p) < w.config.N && c.start(p, c.sizes.Prefix) == c.start(from, c.sizes.Prefix); p++ {
				if !w.procs[p].down {
					up++
				}
				if c.server[p] == p {
					supers++
				}
			}
			if supers == 0 && up > 0 || supers > 1 && 2*(up-1) <= c.sizes.Cap {
				return fmt.Sprintf("the segment from %s has %d super-peers for %d nodes", w.config.Text(from), supers, up)
			}
		}
		return ""
	}}
}

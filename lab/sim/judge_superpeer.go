package sim

import (
	"cmp"
	"fmt"
	"slices"

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
// that it has told so, and told again in the last three periods. Who was sent away,
// has left, or is back without memory is no client any more.
func SuperPeerCap(w *World) Watcher {
	s := &service{w: w, sizes: superpeer.SizesOf(w.config), clients: make([][]served, w.config.N)}
	return Watcher{Name: "cap of super-peers", Property: process.SuperPeerCap, Messages: true, Watch: s.watch}
}

// served is a client as a super-peer knows it.
type served struct {
	client process.ID
	life   uint32           // what it was told is for this one
	told   process.Duration // that it is served; by the clock of the super-peer
}

// service is what an onlooker knows of clients by the messages about them. A process
// may be a client of two for a while, if it has gone from one of them and that one
// has not noticed.
type service struct {
	w       *World
	sizes   superpeer.Sizes
	clients [][]served // by rank, each rising
}

func (s *service) watch(o *Observation) string {
	switch o.Kind {
	case Crashed:
		s.clients[o.Process] = nil
	case Sent:
		return s.sent(o)
	case Received:
		if s.name(o) == "DETACH" {
			s.leave(o.Peer, o.Process)
		}
	}
	return ""
}

func (s *service) name(o *Observation) string {
	return s.w.cfg.Spec.Message(o.Message.Layer, o.Message.Type).Name
}

func (s *service) sent(o *Observation) string {
	switch s.name(o) {
	case "SPLIT", "REDIRECT":
		s.leave(o.Peer, o.Process)
	case "PONG":
		s.serve(o.Peer, o.Process)
	case "ATTACHED":
		s.serve(o.Peer, o.Process)
		if load := s.load(o.Process); load > s.sizes.Cap {
			return fmt.Sprintf("%s has %d clients, it may have %d", s.w.config.Text(o.Process), load, s.sizes.Cap)
		}
	}
	return ""
}

// find returns where a client of a super-peer is, or ought to be.
func (s *service) find(p, super process.ID) (int, bool) {
	return slices.BinarySearchFunc(s.clients[super], p, func(c served, p process.ID) int { return cmp.Compare(c.client, p) })
}

func (s *service) serve(p, super process.ID) {
	i, found := s.find(p, super)
	if !found {
		s.clients[super] = slices.Insert(s.clients[super], i, served{client: p})
	}
	c := &s.clients[super][i]
	c.life, c.told = s.w.oracle.addressee(super, p), s.w.Clock(super)
}

func (s *service) leave(p, super process.ID) {
	if i, found := s.find(p, super); found {
		s.clients[super] = slices.Delete(s.clients[super], i, i+1)
	}
}

// load counts the clients of a super-peer. It forgets who has been silent for three
// periods. That one may be down, and even have been down when its ATTACH arrived; or
// it serves itself by now, or is served by another.
func (s *service) load(super process.ID) int {
	patience := 3 * process.Duration(s.sizes.Check) * s.w.config.D()
	s.clients[super] = slices.DeleteFunc(s.clients[super], func(c served) bool {
		return s.w.procs[c.client].incarnation != c.life || s.w.Clock(super)-c.told >= patience
	})
	return len(s.clients[super])
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

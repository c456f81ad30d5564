package superpeer

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// The properties that only super-peers claim.
const (
	Place  process.Property = "place of super-peers"  // every live node is served by the first live node of a segment of its own
	Cap    process.Property = "cap of super-peers"    // no super-peer has more clients than the limit
	Spread process.Property = "spread of super-peers" // as many super-peers as segments, one in each
)

// Onlooker is what the judges of super-peers need in addition to the scene.
type Onlooker interface {
	property.Scene
	Now() process.Duration
	Clock(p process.ID) process.Duration // the local clock of p
	Incarnation(p process.ID) uint32
	Addressee(from, to process.ID) uint32 // the incarnation of "to" that "from" would write to
}

// settlePeriods is the number of periods without a change after which the super-peers
// must be correct: enough for a crash to be noticed and its clients forgotten, and for
// segments to be halved or joined one bit at a time.
const settlePeriods = 8

// Census is what an onlooker knows about super-peers: which nodes are up, since when
// nothing has changed, and which node each one names as its super-peer.
type Census struct {
	o      Onlooker
	c      *process.Config
	sizes  Sizes
	change process.Duration
}

// NewCensus begins a census before the first event.
func NewCensus(o Onlooker) *Census {
	return &Census{o: o, c: o.Config(), sizes: SizesOf(o.Config())}
}

// Changed notes that a process has crashed or come back.
func (c *Census) Changed() { c.change = c.o.Now() }

// settled reports whether there was enough time since the last change.
func (c *Census) settled() bool {
	period := process.Duration(c.sizes.Check) * c.c.D()
	return c.o.Now()-c.change >= settlePeriods*period
}

// start returns the start of the segment of p that has k bits of the identifier.
func (c *Census) start(p process.ID, k int) uint64 {
	return uint64(c.c.Label(p)) &^ (1<<(c.sizes.Bits-k) - 1)
}

// Place judges the end of a run: if nothing has changed for long, every live node is
// served by the first live node of one of its segments, of k bits or more.
func (c *Census) Place() *property.Violation {
	for p := range process.ID(c.c.N) {
		if c.settled() && !c.o.Down(p) {
			if text := c.misplaced(p); text != "" {
				return &property.Violation{Property: Place, Process: p, Text: text}
			}
		}
	}
	return nil
}

func (c *Census) misplaced(p process.ID) string {
	name := c.c.Text
	switch s := c.o.Leader(p); {
	case s == process.None:
		return name(p) + " has no super-peer"
	case c.o.Down(s):
		return fmt.Sprintf("%s is served by %s, which is down", name(p), name(s))
	case s > p || c.start(s, c.sizes.Prefix) != c.start(p, c.sizes.Prefix):
		return fmt.Sprintf("%s is served by %s, which is not before it in its segment", name(p), name(s))
	case c.o.Leader(s) != s:
		return fmt.Sprintf("%s is served by %s, which is not a super-peer", name(p), name(s))
	}
	return c.passedOver(p)
}

// passedOver names a live node before the super-peer of p that shares more of the
// identifier with p than the super-peer does.
func (c *Census) passedOver(p process.ID) string {
	s := c.o.Leader(p)
	k := c.sizes.Prefix
	for k < c.sizes.Bits && c.start(s, k+1) == c.start(p, k+1) {
		k++
	}
	for q := s - 1; q >= 0 && c.start(q, k) == c.start(s, k); q-- {
		if !c.o.Down(q) {
			return fmt.Sprintf("%s is served by %s, but %s is before that one in all their segments",
				c.c.Text(p), c.c.Text(s), c.c.Text(q))
		}
	}
	return ""
}

// served is a client from the super-peer's point of view.
type served struct {
	client process.ID
	life   uint32           // the incarnation that was told
	told   process.Duration // when it was told that it is served, by the clock of the super-peer
}

// Clients is what an onlooker knows about clients from the messages about them. A node
// may be a client of two super-peers for a while, if it has left one of them and that
// one has not noticed.
type Clients struct {
	o       Onlooker
	sizes   Sizes
	clients [][]served // by rank, each rising
}

// NewClients begins before the first event.
func NewClients(o Onlooker) *Clients {
	return &Clients{o: o, sizes: SizesOf(o.Config()), clients: make([][]served, o.Config().N)}
}

// Crashed forgets the clients of a process.
func (s *Clients) Crashed(p process.ID) { s.clients[p] = nil }

// Sent judges that no super-peer takes more clients than its limit. The clients are the
// nodes that it has told so within the last three periods. A node that was sent away,
// has left, or has restarted without memory is no longer a client.
func (s *Clients) Sent(m *process.Message) *property.Violation {
	switch m.Type {
	case splitType, redirectType:
		s.leave(m.To, m.From)
	case pongType:
		s.serve(m.To, m.From)
	case attachedType:
		s.serve(m.To, m.From)
		if load := s.load(m.From); load > s.sizes.Cap {
			return &property.Violation{Property: Cap, Process: m.From,
				Text: fmt.Sprintf("%s has %d clients, the limit is %d", s.o.Config().Text(m.From), load, s.sizes.Cap)}
		}
	}
	return nil
}

// Received notes a message that arrives.
func (s *Clients) Received(m *process.Message) {
	if m.Type == detachType {
		s.leave(m.From, m.To)
	}
}

// find returns the position of a client of a super-peer, or where to insert it.
func (s *Clients) find(p, super process.ID) (int, bool) {
	return slices.BinarySearchFunc(s.clients[super], p, func(c served, p process.ID) int { return cmp.Compare(c.client, p) })
}

func (s *Clients) serve(p, super process.ID) {
	i, found := s.find(p, super)
	if !found {
		s.clients[super] = slices.Insert(s.clients[super], i, served{client: p})
	}
	c := &s.clients[super][i]
	c.life, c.told = s.o.Addressee(super, p), s.o.Clock(super)
}

func (s *Clients) leave(p, super process.ID) {
	if i, found := s.find(p, super); found {
		s.clients[super] = slices.Delete(s.clients[super], i, i+1)
	}
}

// load counts the clients of a super-peer, without those that have been silent for
// three periods. Such a node may be down, possibly since before its ATTACH arrived. Or
// it is a super-peer itself by now, or is served by another.
func (s *Clients) load(super process.ID) int {
	timeout := 3 * process.Duration(s.sizes.Check) * s.o.Config().D()
	s.clients[super] = slices.DeleteFunc(s.clients[super], func(c served) bool {
		return s.o.Incarnation(c.client) != c.life || s.o.Clock(super)-c.told >= timeout
	})
	return len(s.clients[super])
}

// Spread judges the end of a run: if nothing has changed for long, there is a
// super-peer in every segment of k bits with a live node, and only one if that is
// enough for all of them.
func (c *Census) Spread() *property.Violation {
	for p := process.ID(0); int(p) < c.c.N && c.settled(); {
		from := p
		up, supers := 0, 0
		for ; int(p) < c.c.N && c.start(p, c.sizes.Prefix) == c.start(from, c.sizes.Prefix); p++ {
			if !c.o.Down(p) {
				up++
			}
			if c.o.Leader(p) == p {
				supers++
			}
		}
		if supers == 0 && up > 0 || supers > 1 && 2*(up-1) <= c.sizes.Cap {
			return &property.Violation{Property: Spread, Process: from,
				Text: fmt.Sprintf("the segment from %s has %d super-peers for %d nodes", c.c.Text(from), supers, up)}
		}
	}
	return nil
}

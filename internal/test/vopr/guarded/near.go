package guarded

import (
	"math/rand/v2"
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/near"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/test/vopr/history"
	"github.com/conclave-io/conclave/internal/test/vopr/world"
)

// nearby are programs within the server processes that hold names near. Each life of a server has
// one program. The programs have no sessions, and end with the server. They rely on a hold as long
// as the host says that it holds, by the clock of the server.
type nearby struct {
	l       *hosting
	rng     *rand.Rand
	holds   []*nearHold
	granted uint64
}

// nearHold is a hold of such a program.
type nearHold struct {
	near.Hold
	s    *world.Server
	life int
	seat view.Seat
	res  *world.Resource
	ends int64 // when the program releases it
}

func newNearby(l *hosting) *nearby {
	n := &nearby{l: l, rng: rand.New(rand.NewPCG(l.w.Plan.Seed, 13))}
	l.w.After(2000*ms, n.step)
	return n
}

// step lets the program of one server do its next step.
func (n *nearby) step() {
	w := n.l.w
	w.After(n.rng.Int64N(6*ms), n.step)
	s, span := w.Servers[n.rng.IntN(len(w.Servers))], n.rng.Int64N(20*ms)
	res := w.Judge.Guarded[n.rng.IntN(len(w.Judge.Guarded))]
	if n.rng.IntN(4) == 0 {
		span = n.rng.Int64N(3000 * ms)
	}
	s.Receive(func() {
		if s.Host == nil {
			return
		}
		if n.unlock(s); !w.Healed {
			n.lock(s, res, span)
		}
	})
}

// lock makes the program of a server request a name. It holds the name for the given time.
func (n *nearby) lock(s *world.Server, res *world.Resource, span int64) {
	h := &nearHold{Hold: near.Hold{Name: res.Name, Owner: &near.Owner{Program: "near"}}, s: s, life: s.Life, seat: view.Seat{Server: s.ID, ID: s.Host.Member().Seat}, res: res, ends: n.l.w.Now + span}
	if s.Host.Lock(s.Now(), &h.Hold) {
		n.begin(h)
	}
}

// begin checks a hold that begins (N1, N2, N4).
func (n *nearby) begin(h *nearHold) {
	w := n.l.w
	n.granted++
	w.Stats.Hosts.Near++
	who := history.ClaimOf(registry.SessionID{0xfe, byte(h.s.ID)}, n.granted)
	if _, given := h.res.Given[h.Fence]; given {
		w.Violate("fence", "the fence %d of %q was given to another, and to the program of server %d", h.Fence, h.Name, h.s.ID)
	}
	h.res.Given[h.Fence] = who
	if known := h.res.Newest; h.Fence <= known && (h.Floor != 0 || h.Fence>>world.FenceBits < known>>world.FenceBits) {
		w.Violate("fence", "the program of server %d is granted %q with fence %d, and %d was known", h.s.ID, h.Name, h.Fence, known)
	}
	if n.l.ended[h.seat] {
		w.Violate("seat", "the program of server %d is granted %q, and the seat has ended", h.s.ID, h.Name)
	}
	h.res.Newest = max(h.res.Newest, h.Fence)
	if others := n.believers(h.res); len(others) > 0 && (h.Floor != 0 || len(others) >= world.GuardedUnits) {
		w.Violate("exclusion", "the program of server %d enters %q with fence %d beside %v", h.s.ID, h.Name, h.Fence, others)
	}
	h.res.Clean()
	for _, other := range h.res.Holds {
		if other.Counts() && (h.Floor != 0 || other.Claim.Units() == 1) {
			w.Violate("exclusion", "the program of server %d enters %q with fence %d while session %v holds it with fence %d", h.s.ID, h.Name, h.Fence, other.Session.ID, other.Claim.Fence)
		}
	}
	n.holds = append(n.holds, h)
}

// unlock makes the program of a server release holds whose time is over.
func (n *nearby) unlock(s *world.Server) {
	over := func(h *nearHold) bool {
		return h.s == s && h.life == s.Life && (h.ends <= n.l.w.Now || n.l.w.Healed)
	}
	for at := slices.IndexFunc(n.holds, over); at >= 0; at = slices.IndexFunc(n.holds, over) {
		h := n.holds[at]
		n.holds = slices.Delete(n.holds, at, at+1)
		s.Host.Unlock(s.Now(), &h.Hold)
	}
}

// believes reports whether the program would rely on the hold if it ran now. The next turn carries
// out the outputs that this query causes in the host.
func (h *nearHold) believes() bool {
	if h.s.Host == nil || h.life != h.s.Life {
		return false
	}
	state := h.s.Host.Near(h.s.Now(), &h.Hold)
	if h.s.Host.Owes() {
		h.s.Wake()
	}
	return state.Holds()
}

// believers returns the servers whose programs rely on a hold of a name. It forgets holds that have
// ended.
func (n *nearby) believers(res *world.Resource) (servers []uint64) {
	n.holds = slices.DeleteFunc(n.holds, func(h *nearHold) bool { return h.res == res && !h.believes() })
	for _, h := range n.holds {
		if h.res == res {
			servers = append(servers, h.s.ID)
		}
	}
	return servers
}

// beside checks a hold of a client that begins, against the near holds (N1).
func (n *nearby) beside(h *world.Hold) {
	if n == nil || !h.Claim.Res.Guarded {
		return
	}
	if others := n.believers(h.Claim.Res); len(others) > 0 && (h.Claim.Units() == 1 || len(others) >= world.GuardedUnits) {
		n.l.w.Violate("exclusion", "session %v enters %q with fence %d while the programs of servers %v hold it", h.Session.ID, h.Claim.Res.Name, h.Claim.Fence, others)
	}
}

// end checks a seat that ends. The program of its server must hold nothing (N4), because near holds
// are not handed over.
func (n *nearby) end(seat view.Seat) {
	if n == nil {
		return
	}
	for _, h := range slices.Clone(n.holds) {
		if h.seat == seat && h.believes() {
			n.l.w.Violate("seat", "the seat of server %d ends, and its program holds %q", seat.Server, h.Name)
		}
	}
}

// unheld checks that no program holds a name whose guard an entry has changed (N7).
func (n *nearby) unheld(res *world.Resource) {
	if n == nil {
		return
	}
	if others := n.believers(res); len(others) > 0 {
		n.l.w.Violate("quiet", "the guard of %q changes, and the programs of servers %v hold it", res.Name, others)
	}
}

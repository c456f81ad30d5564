package vopr

import (
	"math/rand/v2"
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/near"
	"github.com/conclave-io/conclave/internal/service/registry"
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
	s    *server
	life int
	seat view.Seat
	res  *resource
	ends int64 // when the program releases it
}

func newNearby(l *hosting) *nearby {
	n := &nearby{l: l, rng: rand.New(rand.NewPCG(l.w.plan.Seed, 13))}
	l.w.after(2000*ms, n.step)
	return n
}

// step lets the program of one server do its next step.
func (n *nearby) step() {
	w := n.l.w
	w.after(n.rng.Int64N(6*ms), n.step)
	s, span := w.servers[n.rng.IntN(len(w.servers))], n.rng.Int64N(20*ms)
	res := w.judge.live[n.rng.IntN(len(w.judge.live))]
	if n.rng.IntN(4) == 0 {
		span = n.rng.Int64N(3000 * ms)
	}
	s.receive(func() {
		if s.host == nil {
			return
		}
		if n.unlock(s); !w.healed {
			n.lock(s, res, span)
		}
	})
}

// lock makes the program of a server request a name. It holds the name for the given time.
func (n *nearby) lock(s *server, res *resource, span int64) {
	h := &nearHold{Hold: near.Hold{Name: res.name, Owner: &near.Owner{Program: "near"}}, s: s, life: s.life, seat: view.Seat{Server: s.id, ID: s.host.Member().Seat}, res: res, ends: n.l.w.now + span}
	if s.host.Lock(s.now(), &h.Hold) {
		n.begin(h)
	}
}

// begin checks a hold that begins (N1, N2, N4).
func (n *nearby) begin(h *nearHold) {
	w := n.l.w
	n.granted++
	w.stats.Hosts.Near++
	who := claimOf(registry.SessionID{0xfe, byte(h.s.id)}, n.granted)
	if _, given := h.res.given[h.Fence]; given {
		w.violate("fence", "the fence %d of %q was given to another, and to the program of server %d", h.Fence, h.Name, h.s.id)
	}
	h.res.given[h.Fence] = who
	if known := h.res.newest; h.Fence <= known && (h.Floor != 0 || h.Fence>>fenceBits < known>>fenceBits) {
		w.violate("fence", "the program of server %d is granted %q with fence %d, and %d was known", h.s.id, h.Name, h.Fence, known)
	}
	if n.l.ended[h.seat] {
		w.violate("seat", "the program of server %d is granted %q, and the seat has ended", h.s.id, h.Name)
	}
	h.res.newest = max(h.res.newest, h.Fence)
	if others := n.believers(h.res); len(others) > 0 && (h.Floor != 0 || len(others) >= liveUnits) {
		w.violate("exclusion", "the program of server %d enters %q with fence %d beside %v", h.s.id, h.Name, h.Fence, others)
	}
	h.res.clean()
	for _, other := range h.res.holds {
		if other.counts() && (h.Floor != 0 || other.claim.units() == 1) {
			w.violate("exclusion", "the program of server %d enters %q with fence %d while session %v holds it with fence %d", h.s.id, h.Name, h.Fence, other.session.id, other.claim.fence)
		}
	}
	n.holds = append(n.holds, h)
}

// unlock makes the program of a server release holds whose time is over.
func (n *nearby) unlock(s *server) {
	over := func(h *nearHold) bool {
		return h.s == s && h.life == s.life && (h.ends <= n.l.w.now || n.l.w.healed)
	}
	for at := slices.IndexFunc(n.holds, over); at >= 0; at = slices.IndexFunc(n.holds, over) {
		h := n.holds[at]
		n.holds = slices.Delete(n.holds, at, at+1)
		s.host.Unlock(s.now(), &h.Hold)
	}
}

// believes reports whether the program would rely on the hold if it ran now. The next turn carries
// out the outputs that this query causes in the host.
func (h *nearHold) believes() bool {
	if h.s.host == nil || h.life != h.s.life {
		return false
	}
	state := h.s.host.Near(h.s.now(), &h.Hold)
	if h.s.host.Owes() {
		h.s.wake()
	}
	return state.Holds()
}

// believers returns the servers whose programs rely on a hold of a name. It forgets holds that have
// ended.
func (n *nearby) believers(res *resource) (servers []uint64) {
	n.holds = slices.DeleteFunc(n.holds, func(h *nearHold) bool { return h.res == res && !h.believes() })
	for _, h := range n.holds {
		if h.res == res {
			servers = append(servers, h.s.id)
		}
	}
	return servers
}

// beside checks a hold of a client that begins, against the near holds (N1).
func (n *nearby) beside(h *hold) {
	if n == nil || !h.claim.res.live {
		return
	}
	if others := n.believers(h.claim.res); len(others) > 0 && (h.claim.units() == 1 || len(others) >= liveUnits) {
		n.l.w.violate("exclusion", "session %v enters %q with fence %d while the programs of servers %v hold it", h.session.id, h.claim.res.name, h.claim.fence, others)
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
			n.l.w.violate("seat", "the seat of server %d ends, and its program holds %q", seat.Server, h.Name)
		}
	}
}

// unheld checks that no program holds a name whose guard an entry has changed (N7).
func (n *nearby) unheld(res *resource) {
	if n == nil {
		return
	}
	if others := n.believers(res); len(others) > 0 {
		n.l.w.violate("quiet", "the guard of %q changes, and the programs of servers %v hold it", res.name, others)
	}
}

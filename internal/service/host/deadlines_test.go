package host

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// promises is one home with its clients and a leader, over links with delays, in steps of
// a millisecond of real time. The home may be paused with its clock.
type promises struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand
	faults bool

	real   int64 // ns
	paused int64 // in all
	until  int64 // the home stands still until then
	host   *Host
	lease  int64
	seat   registry.SessionID

	expiry  int64 // of the seat, at the leader
	over    bool  // the seat has ended
	mail    []letter
	clients []*tenant
	least   int64 // time that a client had left when all was well
}

// letter arrives at a time.
type letter struct {
	at   int64
	take func()
}

// tenant is a client.
type tenant struct {
	id       registry.SessionID
	ttl      int64
	sequence uint64
	sent     map[uint64]int64 // when each Open or Renew was sent
	next     int64            // when to send the next
	deadline int64            // D_c
	lost     bool
}

func newPromises(t *testing.T, seed uint64) *promises {
	p := &promises{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 4)), real: 1e9, lease: 1.2e9, least: 1 << 62}
	p.host = New(Config{Server: 1, Lease: p.lease})
	p.host.Enter([2]uint64{1})
	s := view.Seat{Server: 1, ID: [2]uint64{1}}
	p.seat = registry.SeatID(s)
	p.expiry = p.real + p.lease
	p.pump()
	p.host.View(p.real, &view.Log{View: view.View{Epoch: 1, Members: []view.Seat{s}}, Seats: []view.Seat{s}, Guards: []view.Guard{{Prefix: "a/", Use: view.Use{Algorithm: "central"}}}})
	for i := range 3 {
		p.clients = append(p.clients, &tenant{id: registry.SessionID{byte(i + 1)}, ttl: []int64{300e6, 1e9, 5e9}[i], sent: map[uint64]int64{}, next: p.real + 50e6})
	}
	return p
}

// post delivers a letter after a delay. With faults, the letter may be lost or take very
// long.
func (p *promises) post(take func()) {
	delay := int64(p.random.IntN(3e6))
	if p.faults && p.random.IntN(20) == 0 {
		delay = int64(p.random.IntN(2e9))
	}
	if p.faults && p.random.IntN(50) == 0 {
		return
	}
	p.mail = append(p.mail, letter{p.real + delay, take})
}

// clock is that of the home.
func (p *promises) clock() int64 { return p.real - p.paused }

// pump carries out what the home says.
func (p *promises) pump() {
	o := p.host.Output()
	if o.Err != nil {
		p.t.Fatalf("seed %d: %v", p.seed, o.Err)
	}
	for _, c := range slices.Clone(o.Seat) {
		p.post(func() { p.lead(c) })
	}
	for _, r := range slices.Clone(o.Replies) {
		p.post(func() { p.clients[r.Conn-1].told(p, r.Outcome) })
	}
}

// lead answers a command of the seat as a leader does.
func (p *promises) lead(c registry.Command) {
	o := registry.Outcome{Session: c.Session, Sequence: c.Sequence, Result: registry.NoSession(c.Session)}
	if !p.over && c.Op.Renews() {
		p.expiry = max(p.expiry, p.real+p.lease)
		o.Result = registry.Result{Code: registry.OK, Remaining: p.lease}
	}
	p.post(func() {
		p.host.Answer(p.clock(), []registry.Outcome{o})
		p.pump()
	})
}

// told takes an answer.
func (c *tenant) told(p *promises, o registry.Outcome) {
	switch o.Result.Code {
	case registry.OK:
		span := min(c.ttl, p.lease)
		if sent, known := c.sent[o.Sequence]; known && !c.lost {
			c.deadline = max(c.deadline, sent+o.Result.Remaining-mu(span))
		}
	case registry.SessionGone:
		if c.deadline > p.real && !c.lost {
			p.t.Fatalf("seed %d: client %d is told that its session is gone %d ms before its deadline", p.seed, c.id[0], (c.deadline-p.real)/1e6)
		}
	}
}

// live lets a client renew, each eighth of what it may rely on.
func (c *tenant) live(p *promises) {
	if c.deadline != 0 && p.real > c.deadline {
		c.lost = true
	}
	if c.lost || p.real < c.next {
		return
	}
	c.sequence++
	op := registry.OpRenew
	if c.deadline == 0 {
		op = registry.OpOpen
	}
	c.sent[c.sequence] = p.real
	c.next = p.real + max(min(c.ttl, p.lease)/8, 25e6)
	if p.faults && p.random.IntN(20) == 0 {
		c.next += int64(p.random.IntN(1.5e9)) // it stands still, and believes on
	}
	command := registry.Command{Op: op, Session: c.id, Sequence: c.sequence, TTL: c.ttl}
	conn := uint64(c.id[0])
	p.post(func() {
		p.host.Submit(p.clock(), conn, []registry.Command{command})
		p.pump()
	})
}

// step lets a millisecond pass.
func (p *promises) step() {
	p.real += 1e6
	if p.real < p.until {
		p.paused += 1e6
	} else if p.faults && p.random.IntN(2000) == 0 {
		p.until = p.real + int64(p.random.IntN(4e9))
	}
	if p.real > p.expiry {
		p.over = true
	}
	if p.real >= p.until {
		due := slices.Clone(p.mail)
		slices.SortStableFunc(due, func(a, b letter) int { return int(a.at - b.at) })
		p.mail = nil
		for _, l := range due {
			if l.at <= p.real {
				l.take()
			} else {
				p.mail = append(p.mail, l)
			}
		}
		if p.real%10e6 == 0 {
			p.host.Tick(p.clock(), 0)
			p.pump()
		}
	}
	for _, c := range p.clients {
		c.live(p)
		p.check(c)
	}
}

// check requires of each client that believes it holds: its home's seat is live, also at
// the leader, and its session is live at the home (N4, H4, H5).
func (p *promises) check(c *tenant) {
	if c.deadline == 0 || c.lost || c.deadline < p.real {
		return
	}
	if c.deadline > p.expiry {
		p.t.Fatalf("seed %d: client %d relies on %d ms more than its home's seat has", p.seed, c.id[0], (c.deadline-p.expiry)/1e6)
	}
	if _, open := p.host.home.reg.Session(c.id); !open && p.host.member.Seat != [2]uint64{} {
		p.t.Fatalf("seed %d: the session of client %d has ended %d ms before its deadline", p.seed, c.id[0], (c.deadline-p.real)/1e6)
	}
	if !p.faults && p.real > 3e9 && c.ttl >= p.lease {
		p.least = min(p.least, c.deadline-p.real)
	}
}

// TestDeadlines: no client relies on its home for longer than the leader gave the home's
// seat, and no home ends a session that its client relies on: with delays, losses, and a
// home that is paused with its clock (H4, H5). Without faults, clients never lose their
// session, and have 0.83 s left, minus delays.
func TestDeadlines(t *testing.T) {
	for seed := range uint64(300) {
		p := newPromises(t, seed)
		p.faults = seed >= 10
		for range 8000 {
			if p.step(); p.over && !slices.ContainsFunc(p.clients, func(c *tenant) bool { return !c.lost }) {
				break
			}
		}
		lost := 0
		for _, c := range p.clients {
			if c.lost || c.deadline == 0 {
				lost++
			}
		}
		if !p.faults && (lost > 0 || p.host.member.Lapsed || p.least < 800e6) {
			t.Errorf("seed %d: all is well, and %d clients lost; they had %d ms left at least", seed, lost, p.least/1e6)
		}
	}
}

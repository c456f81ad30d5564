package host

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm/served"
	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/near"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/process"
)

// world is a cluster of hosts, a log, lanes that break, and clients, on a schedule that a
// seed decides.
type world struct {
	random  *rand.Rand
	nearly  *rand.Rand // of programs within the processes of servers; nil: there are none
	spec    *process.Spec
	now     int64
	calm    int // how much continues beside faults
	log     view.Log
	history []*view.Log // after each entry
	servers []*server
	lanes   map[[2]uint64]*lane // from, to
	seats   uint64
	ghosts  []ghost
	fences  map[string][]uint64 // that clients were given, by name
	tells   bool
	trace   *strings.Builder // if it tells
	bad     string           // what was violated
	cutter  *cutter          // nil: no cuts are asked for
	ended   []CutEnd

	entries, starts, heirs, elections, nears int

	elected int64      // when a member was given the coordination last
	watches *rand.Rand // draws watch stacks, so that the other draws do not depend on them; nil: there are none
}

// server is a server that is up, or will be again, with its clients.
type server struct {
	id      uint64
	seat    [2]uint64
	host    *Host            // nil: down
	applied int              // entries
	wants   map[place]uint64 // the number of the request to acquire
	holds   map[place]uint64
	near    map[string]*near.Hold // of the program in its process, by name
	open    []registry.SessionID  // of clients: its own, and those of homes that it has taken over
	asked   []registry.Command    // without an answer
	numbers uint64                // of requests
	lapsed  bool
	left    bool // its process is about to end
	waits   bool // for its seat
}

// clients is how many clients a home has of its own.
const clients = 2

// place is what a client wants or holds.
type place struct {
	client int
	name   string
}

func comparePlaces(a, b place) int { return cmp.Or(a.client-b.client, cmp.Compare(a.name, b.name)) }

func inOrder(places map[place]uint64) []place {
	return slices.SortedFunc(maps.Keys(places), comparePlaces)
}

// ghost are the clients of a seat whose server has died: they believe that they hold
// until their deadlines.
type ghost struct {
	seat  view.Seat
	holds map[place]uint64
}

// lane carries batches from one server to another.
type lane struct {
	up    bool
	queue [][]byte
}

var names = []string{"a/1", "a/2", "a/b/1", "c"}

func newWorld(seed uint64, spec *process.Spec, n int, tells bool) *world {
	w := &world{
		tells:  tells,
		random: rand.New(rand.NewPCG(seed, 1)), spec: spec, now: 1,
		lanes: make(map[[2]uint64]*lane), fences: make(map[string][]uint64), trace: new(strings.Builder),
	}
	w.calm = []int{0, 1200, 6000}[w.random.IntN(3)]
	w.log.Set("a/", w.use(), view.Conditions{})
	w.log.Set("c", w.use(), view.Conditions{})
	for id := range uint64(n) {
		s := &server{id: id + 1}
		w.servers = append(w.servers, s)
		w.boot(s)
	}
	w.settle()
	return w
}

func (w *world) use() view.Use {
	u := view.Use{Algorithm: w.spec.Name}
	if w.random.IntN(3) == 0 {
		u.Options = "coordinator=" + []string{elected, first}[w.random.IntN(2)]
	}
	return u
}

func (w *world) say(format string, args ...any) {
	if !w.tells {
		return
	}
	fmt.Fprintf(w.trace, "%d ", w.now/1e6)
	fmt.Fprintf(w.trace, format+"\n", args...)
}

func (w *world) fail(format string, args ...any) {
	if w.bad == "" {
		w.bad = fmt.Sprintf(format, args...)
		w.say("VIOLATION %s", w.bad)
	}
}

// boot starts a server with an empty memory.
func (w *world) boot(s *server) {
	s.host = New(Config{Server: s.id, Seed: w.random.Uint64(), Reuse: 1 + w.random.IntN(2), Lease: registry.MaxTTL})
	s.applied = 0
	s.clear()
	if w.log.Guarded() {
		w.enter(s)
	}
}

// enter gives a server a new seat.
func (w *world) enter(s *server) {
	w.seats++
	s.seat, s.lapsed, s.waits = [2]uint64{w.seats}, false, false
	s.clear()
	w.say("server %d has seat %d", s.id, w.seats)
	s.host.Enter(s.seat)
	w.carryOut(s)
}

// clear forgets all clients.
func (s *server) clear() {
	s.wants, s.holds, s.asked = make(map[place]uint64), make(map[place]uint64), nil
	s.near = make(map[string]*near.Hold)
	s.open = make([]registry.SessionID, clients)
}

// settle ends an entry of the log.
func (w *world) settle() {
	before := slices.Clone(w.log.Guards)
	if w.log.Settle(0, func(string) bool { return false }) {
		w.starts++
		w.say("START %d %v %v", w.log.Epoch, w.log.Members, w.log.Guards)
	}
	for i := range before {
		g := &before[i]
		after := slices.IndexFunc(w.log.Guards, func(o view.Guard) bool { return o.Prefix == g.Prefix })
		if after < 0 || w.log.Guards[after].Use != g.Use {
			w.unheld(g.Prefix, before)
		}
	}
	w.history = append(w.history, w.log.Clone())
}

// unheld checks that a guard changed when nothing was held under it (N7).
func (w *world) unheld(prefix string, guards []view.Guard) {
	for _, name := range names {
		longest := ""
		for _, g := range guards {
			if strings.HasPrefix(name, g.Prefix) && len(g.Prefix) >= len(longest) {
				longest = g.Prefix
			}
		}
		if longest == prefix && w.holders(name) > 0 && strings.HasPrefix(name, prefix) {
			w.fail("the guard of %q changes while %s is held", prefix, name)
		}
	}
}

// holders counts the clients that believe to hold a name.
func (w *world) holders(name string) (n int) {
	count := func(holds map[place]uint64) {
		for p := range holds {
			if p.name == name {
				n++
			}
		}
	}
	for _, s := range w.servers {
		if count(s.holds); s.near[name] != nil {
			n++
		}
	}
	for _, g := range w.ghosts {
		count(g.holds)
	}
	return n
}

// carryOut does what a host asks for.
func (w *world) carryOut(s *server) {
	o := s.host.Output()
	if o.Err != nil {
		w.fail("server %d: %v", s.id, o.Err)
		return
	}
	for _, b := range o.Batches {
		if l := w.lanes[[2]uint64{s.id, b.Server}]; l != nil && l.up {
			l.queue = append(l.queue, slices.Clone(b.Data))
			if w.tells {
				w.say("%d -> %d %s", s.id, b.Server, describe(b.Data))
			}
		}
	}
	for i := range o.Cuts {
		w.ended = append(w.ended, o.Cuts[i])
		w.cutter.judge(w, s, &o.Cuts[i])
	}
	gone, enter, left, lanes, commands := o.Gone, o.Enter, o.Left, slices.Clone(o.Close), slices.Clone(o.Seat)
	for _, r := range slices.Clone(o.Replies) {
		w.replied(s, &r)
	}
	w.tellNear(s, o.Near)
	for _, peer := range lanes {
		w.cut(peer, s.id, true)
	}
	for _, c := range commands {
		w.order(s, &c)
	}
	if gone != "" {
		w.say("server %d: gone: %s", s.id, gone)
		if len(s.holds) > 0 {
			w.fail("the seat of server %d has ended while its clients hold %v", s.id, s.holds)
		}
		s.clear()
		s.host.pause = pause{}
	}
	if enter {
		w.enter(s)
	}
	s.left = left
}

// order carries out a command of a seat.
func (w *world) order(s *server, c *registry.Command) {
	seat := view.Seat{Server: s.id, ID: s.seat}
	if c.Session != registry.SeatID(seat) {
		return
	}
	result := registry.Result{Code: registry.OK}
	switch c.Op {
	case registry.OpEnter:
		if s.waits = !w.log.Guarded(); s.waits {
			return // it is refused for as long as no algorithm guards any name
		}
		w.log.Enter(seat)
		s.lapsed, result.Remaining = false, forever
	case registry.OpRenew:
		if s.lapsed || !w.live(s) {
			return
		}
		result.Remaining = forever
	case registry.OpTurn:
		w.say("server %d asks for a turn: %s", s.id, c.Value)
		if c.Guarding.Coordinator != 0 && w.elected != 0 && w.now < w.elected+10e9 { // V4
			result = registry.Result{Code: registry.Unavailable, Remaining: w.elected + 10e9 - w.now}
			break
		}
		if c.Guarding.Coordinator != 0 {
			w.elected = w.now
			w.elections++
		}
		w.log.Turn(c.Guarding.Epoch, c.Guarding.Coordinator)
	case registry.OpQuiet:
		w.say("server %d: quiet %d", s.id, c.Guarding.Change)
		if w.log.Quiet(seat, c.Guarding.Change, c.Guarding.Epoch); c.Guarding.Change == 0 {
			w.log.Inherited(seat, c.Guarding.Epoch)
		}
	case registry.OpClose:
		result.Code = w.closes(s, c)
	default:
		return
	}
	w.settle()
	s.host.Answer(w.now, []registry.Outcome{{Session: c.Session, Sequence: c.Sequence, Result: result}})
	w.carryOut(s)
}

// closes ends a seat at the wish of its server. The clients continue at the heir at once,
// before the heir has applied the entry.
func (w *world) closes(s *server, c *registry.Command) registry.Code {
	seat := view.Seat{Server: s.id, ID: s.seat}
	if len(s.near) > 0 {
		w.fail("server %d closes its seat while its own program holds %v", s.id, s.near)
	}
	if c.Guarding == nil {
		if len(s.holds) > 0 {
			w.fail("server %d closes its seat while its clients hold %v", s.id, s.holds)
		}
		w.log.End(seat)
		return registry.OK
	}
	if !w.log.CanInherit(seat, c.Guarding.Heir) || w.random.IntN(8) == 0 {
		w.say("server %d: %v is no heir", s.id, c.Guarding.Heir)
		return registry.NotMember
	}
	w.say("server %d: its clients go on at %v", s.id, c.Guarding.Heir)
	w.log.Bequeath(seat, c.Guarding.Heir)
	w.heirs++
	heir := w.servers[c.Guarding.Heir.Server-1]
	if heir.host == nil { // its seat outlasts what they were promised, and they do not find it
		i := slices.IndexFunc(w.ghosts, func(g ghost) bool { return g.seat == c.Guarding.Heir })
		for _, p := range inOrder(s.holds) {
			w.ghosts[i].holds[place{len(w.ghosts[i].holds) + 1000, p.name}] = s.holds[p]
		}
		s.clear()
		return registry.OK
	}
	for client, id := range s.open {
		w.move(s, heir, client, id)
	}
	s.clear()
	if w.random.IntN(4) == 0 {
		w.askToStop(heir)
	}
	if heir.lapsed { // which it had not when it adopted them
		for len(heir.holds) > 0 {
			w.leaveAny(heir)
		}
	}
	return registry.OK
}

// move has a client continue at the heir of its home. It sends what was not answered again.
func (w *world) move(s, heir *server, client int, id registry.SessionID) {
	if id == (registry.SessionID{}) {
		return
	}
	to := len(heir.open)
	heir.open = append(heir.open, id)
	heir.numbers = max(heir.numbers, s.numbers)
	for _, p := range inOrder(s.holds) {
		if p.client == client {
			heir.holds[place{to, p.name}] = s.holds[p]
		}
	}
	for _, p := range inOrder(s.wants) {
		if p.client == client {
			heir.wants[place{to, p.name}] = s.wants[p]
		}
	}
	for _, c := range s.asked {
		if c.Session == id {
			heir.asked = append(heir.asked, c)
			heir.host.Submit(w.now, uint64(to)+1, []registry.Command{c})
		}
	}
}

const forever = 1e18

// session is that of a client at the present seat of its home.
func (s *server) session(client int) registry.SessionID {
	return registry.SessionID{byte(s.id), byte(s.seat[0]), byte(s.seat[0] >> 8), byte(client + 1)}
}

// submit has a client send a request, and returns its number.
func (w *world) submit(s *server, client int, c registry.Command) uint64 {
	s.numbers++
	c.Session, c.Sequence = s.open[client], s.numbers
	s.asked = append(s.asked, c)
	s.host.Submit(w.now, uint64(client)+1, []registry.Command{c})
	return c.Sequence
}

// replied takes an answer to a client.
func (w *world) replied(s *server, r *Reply) {
	client := int(r.Conn) - 1
	if client >= len(s.open) || r.Session != s.open[client] {
		return // of an earlier seat
	}
	if r.Result.Code != registry.Queued {
		s.asked = slices.DeleteFunc(s.asked, func(c registry.Command) bool { return c.Session == r.Session && c.Sequence == r.Sequence })
	}
	for _, p := range inOrder(s.wants) {
		if p.client != client || s.wants[p] != r.Sequence && r.Sequence != 0 {
			continue
		}
		switch r.Result.Code {
		case registry.Queued:
		case registry.OK:
			w.granted(s, p, r.Result.Fence)
		default:
			w.say("server %d: client %d gets no %s: code %d", s.id, client, p.name, r.Result.Code)
			delete(s.wants, p)
		}
	}
}

// granted checks a grant (N1, N2).
func (w *world) granted(s *server, p place, fence uint64) {
	w.say("server %d: client %d is granted %s with %d.%d", s.id, p.client, p.name, fence>>fenceBits, fence&(1<<fenceBits-1))
	s.holds[p] = s.wants[p]
	delete(s.wants, p)
	w.check(s, p.name, fence)
}

// check checks a grant that was just told.
func (w *world) check(s *server, name string, fence uint64) {
	w.entries++
	most, exact := 1, w.spec.Name != "k-ricart-agrawala"
	if !exact {
		most = 2
	}
	if s.lapsed {
		w.fail("server %d is granted %s although its seat has lapsed", s.id, name)
	}
	if n := w.holders(name); n > most {
		w.fail("%d hold %s", n, name)
	}
	for _, f := range w.fences[name] {
		if exact && f >= fence || f == fence || f>>fenceBits > fence>>fenceBits {
			w.fail("%s: fence %d comes after %d", name, fence, f)
		}
	}
	w.fences[name] = append(w.fences[name], fence)
}

// cut breaks the lane from one server to another. The last frames may be lost, and all in
// flight if the receiver has closed the lane.
func (w *world) cut(from, to uint64, closed bool) {
	l := w.lanes[[2]uint64{from, to}]
	if l == nil || !l.up {
		return
	}
	l.up = false
	w.say("lane %d -> %d is cut", from, to)
	keep := w.random.IntN(len(l.queue) + 1)
	if closed {
		keep = 0
	}
	l.queue = l.queue[:keep]
	if s := w.servers[from-1]; s.host != nil {
		s.host.Lane(to, false)
		w.carryOut(s)
	}
}

func (w *world) connect(from, to uint64) {
	s := w.servers[from-1]
	l := w.lanes[[2]uint64{from, to}]
	if l == nil {
		l = new(lane)
		w.lanes[[2]uint64{from, to}] = l
	}
	if l.up || s.host == nil || w.servers[to-1].host == nil {
		return
	}
	l.up = true
	w.say("lane %d -> %d is up", from, to)
	s.host.Lane(to, true)
	w.carryOut(s)
}

// pass delivers the next batch of a lane.
func (w *world) pass(from, to uint64) {
	l, s := w.lanes[[2]uint64{from, to}], w.servers[to-1]
	if l == nil || len(l.queue) == 0 || s.host == nil {
		return
	}
	data := l.queue[0]
	l.queue = l.queue[1:]
	err := s.host.Receive(w.now, from, data)
	if err != nil {
		w.say("server %d closes the lane of %d: %v", to, from, err)
		w.cut(from, to, true)
		l.queue = nil
	}
	w.carryOut(s)
}

// crash: everything of the server is lost, and its clients believe on.
func (w *world) crash(s *server) {
	w.say("server %d crashes", s.id)
	w.ghosts = append(w.ghosts, ghost{view.Seat{Server: s.id, ID: s.seat}, s.holds})
	w.stop(s)
}

// stopIfLeft ends the process of a server that has left.
func (w *world) stopIfLeft(s *server) {
	if s.left {
		w.say("server %d has left", s.id)
		w.stop(s)
	}
}

// tryAgain has a server ask for its seat again that was refused.
func (w *world) tryAgain(s *server) {
	if s.waits && w.log.Guarded() {
		w.order(s, &registry.Command{Op: registry.OpEnter, Session: s.host.seat.id, Sequence: 1})
	}
}

// stop ends the process of a server.
func (w *world) stop(s *server) {
	s.clear()
	s.host, s.left, s.waits = nil, false, false
	for _, o := range w.servers {
		w.cut(s.id, o.id, false)
		w.cut(o.id, s.id, true)
		if l := w.lanes[[2]uint64{o.id, s.id}]; l != nil {
			l.queue = nil
		}
	}
}

// expire ends a client of a dead seat whose deadline is over. When all such clients have
// ended, the seat may end.
func (w *world) expire(i int) {
	g := &w.ghosts[i]
	for _, p := range inOrder(g.holds) {
		delete(g.holds, p)
		w.say("a client of seat %d has lost %s", g.seat.ID[0], p.name)
		return
	}
	w.say("seat %d ends", g.seat.ID[0])
	w.log.End(g.seat)
	w.ghosts = slices.Delete(w.ghosts, i, i+1)
	w.settle()
}

// lapse lets the deadlines of a server's clients pass. Its seat is renewed later, or
// ends.
func (w *world) lapse(s *server) {
	w.say("server %d lapses", s.id)
	s.lapsed = true
	if w.lease(s, 0); len(s.near) > 0 {
		w.fail("the seat of server %d has lapsed, and its own program holds %v", s.id, s.near)
	}
	for _, p := range inOrder(s.holds) {
		w.leave(s, p)
	}
}

// lease sets until when the seat of a server does not lapse.
func (w *world) lease(s *server, until int64) {
	s.host.seat.until = until
	s.host.Tick(w.now, 0)
	w.carryOut(s)
}

// apply lets a server apply the next entries of the log: one, or all as by a snapshot.
func (w *world) apply(s *server) {
	if s.applied == len(w.history) {
		return
	}
	s.applied++
	if w.random.IntN(4) == 0 {
		s.applied = len(w.history)
	}
	w.say("server %d applies %d", s.id, s.applied)
	s.host.View(w.now, w.history[s.applied-1])
	w.carryOut(s)
}

// renew: the lapse of a seat ends if it still lives.
func (w *world) renew(s *server) {
	if s.lapsed && w.live(s) {
		s.lapsed = false
		w.say("server %d is renewed", s.id)
		w.lease(s, forever)
	}
}

// live reports whether the log has the seat of a server.
func (w *world) live(s *server) bool {
	return slices.Contains(w.log.Seats, view.Seat{Server: s.id, ID: s.seat})
}

// tellGone lets the leader tell a server that its seat has ended, if it has.
func (w *world) tellGone(s *server) {
	if s.host.seat.id != (registry.SessionID{}) && !w.live(s) && !s.waits {
		s.host.Answer(w.now, []registry.Outcome{{Session: s.host.seat.id, Result: registry.Result{Code: registry.SessionGone}}})
		w.carryOut(s)
	}
}

// describe is a batch as text.
func describe(data []byte) string {
	b, err := decodeBatch(data)
	if err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("epoch %d from %d ack %d:", b.epoch, b.first, b.ack)
	for rest := b.frames; len(rest) > 0; {
		var one []byte
		if one, rest, err = cut(rest); err != nil {
			return text + err.Error()
		}
		f, err := decodeFrame(one)
		if err != nil {
			return text + err.Error()
		}
		text += fmt.Sprintf(" %s(%s)%x", []string{"", "LOCK", "WAKE", "RESUMED", "HANDOVER", "ADOPTED", "REFUSED", "CUT", "SYSTEM"}[f.kind], f.name, f.message)
	}
	return text
}

// run takes a number of steps. Then it heals everything and lets all waiters enter.
func (w *world) run(steps int) {
	for range steps {
		if w.bad != "" {
			return
		}
		w.step()
		w.stepNear()
	}
	w.heal()
}

func (w *world) step() {
	w.now += int64(w.random.IntN(2e6))
	s := w.servers[w.random.IntN(len(w.servers))]
	o := w.servers[w.random.IntN(len(w.servers))]
	if w.stopIfLeft(s); s.host == nil {
		if w.random.IntN(20) == 0 {
			w.boot(s)
			w.settle()
		} else if len(w.ghosts) > 0 && w.random.IntN(10) == 0 {
			w.expire(w.random.IntN(len(w.ghosts)))
		}
		return
	}
	w.tryAgain(s)
	w.cutter.ask(w, s)
	p := place{w.random.IntN(len(s.open)), names[w.random.IntN(len(names))]}
	switch k := w.random.IntN(400 + w.calm); {
	case k < 130, k >= 400 && k%2 == 0:
		w.passAny()
	case k < 160, k >= 400 && k%8 == 1:
		w.apply(s)
	case k < 190:
		s.host.Tick(w.now, 0)
		w.carryOut(s)
	case k < 260, k >= 400 && k%8 == 3:
		w.want(s, p, w.random.IntN(6) == 0)
	case k < 275:
		w.unwant(s, p)
	case k < 340, k >= 400:
		w.leaveAny(s)
	case k < 342:
		w.tellGone(s)
	case k < 370, k >= 400 && k%8 == 7:
		if s != o {
			w.connect(s.id, o.id)
		}
	default:
		w.fault(s, o, k-370)
	}
}

// passAny delivers a batch of one of the lanes that have any.
func (w *world) passAny() {
	var full [][2]uint64
	for _, from := range w.servers {
		for _, to := range w.servers {
			if l := w.lanes[[2]uint64{from.id, to.id}]; l != nil && len(l.queue) > 0 {
				full = append(full, [2]uint64{from.id, to.id})
			}
		}
	}
	if len(full) > 0 {
		k := full[w.random.IntN(len(full))]
		w.pass(k[0], k[1])
	}
}

func (w *world) want(s *server, p place, try bool) {
	if s.host.seat.id == (registry.SessionID{}) || p.client >= len(s.open) {
		return // it has no seat, or no such client
	}
	if s.wants[p] != 0 || s.holds[p] != 0 {
		return
	}
	if s.open[p.client] == (registry.SessionID{}) {
		if s.host.Member().State == view.Out || s.host.leaving != stays {
			return
		}
		s.open[p.client] = s.session(p.client)
		w.submit(s, p.client, registry.Command{Op: registry.OpOpen, TTL: registry.MaxTTL})
	}
	w.say("server %d: client %d wants %s", s.id, p.client, p.name)
	s.wants[p] = w.submit(s, p.client, registry.Command{Op: registry.OpAcquire, Name: p.name, Try: try})
	w.carryOut(s)
}

func (w *world) unwant(s *server, p place) {
	if s.wants[p] == 0 {
		return
	}
	w.say("server %d: client %d wants %s no longer", s.id, p.client, p.name)
	w.submit(s, p.client, registry.Command{Op: registry.OpCancel, Hold: s.wants[p]})
	w.carryOut(s)
	if s.wants[p] != 0 && !s.host.home.frozen && s.host.asides.of(s.open[p.client]) == nil {
		w.fail("server %d: a request that was withdrawn waits on", s.id)
	}
}

func (w *world) leave(s *server, p place) {
	w.say("server %d: client %d leaves %s", s.id, p.client, p.name)
	hold := s.holds[p]
	delete(s.holds, p)
	w.submit(s, p.client, registry.Command{Op: registry.OpRelease, Hold: hold})
	w.carryOut(s)
}

// leaveAny lets a client leave.
func (w *world) leaveAny(s *server) {
	for _, p := range inOrder(s.holds) {
		w.leave(s, p)
		return
	}
}

func (w *world) fault(s, o *server, k int) {
	switch {
	case k < 10:
		if s != o {
			w.cut(s.id, o.id, false)
		}
	case k < 12:
		w.crash(s)
	case k < 14 && !s.lapsed:
		w.lapse(s)
	case k < 18 && s.lapsed:
		w.renew(s)
	case k < 19 && s.lapsed:
		w.log.End(view.Seat{Server: s.id, ID: s.seat})
		w.say("the seat of server %d ends", s.id)
		w.settle()
	case k < 21:
		w.say("turn")
		w.log.Turn(w.log.Epoch, uint64(w.random.IntN(len(w.servers)+1)))
		w.setWatch()
		w.settle()
	case k < 25:
		w.change()
	case k < 26:
		w.askToStop(s)
	case k < 27:
		w.now += 11e9 // machines that are idle are dropped
	default:
		if len(w.ghosts) > 0 {
			w.expire(w.random.IntN(len(w.ghosts)))
		}
	}
}

func (w *world) askToStop(s *server) {
	w.say("server %d is asked to stop", s.id)
	s.host.Leave(w.now)
	w.carryOut(s)
}

// change changes a guard.
func (w *world) change() {
	prefix := []string{"a/", "a/b/", "c"}[w.random.IntN(3)]
	switch w.random.IntN(4) {
	case 0:
		w.log.Remove(prefix, view.Conditions{})
	case 1:
		w.log.Set(prefix, view.Use{}, view.Conditions{})
	default:
		w.log.Set(prefix, w.use(), view.Conditions{})
	}
	w.say("guards %v", w.log.Guards)
	w.settle()
}

// heal ends all faults. Then everybody who waits must be served.
func (w *world) heal() {
	w.say("heal")
	for len(w.ghosts) > 0 {
		w.expire(0)
	}
	for _, s := range w.servers {
		if w.stopIfLeft(s); s.host == nil {
			w.boot(s)
			w.settle()
		}
		w.renew(s)
	}
	for round := 0; w.bad == ""; round++ {
		if w.round() && round > 20 {
			return
		}
		if round > 3000 {
			w.fail("after 3000 rounds somebody waits: %s", w.standing())
		}
	}
}

// round advances all members and clients a little, and reports whether all requests were
// granted.
func (w *world) round() (done bool) {
	w.now += 1e6
	done = true
	for _, s := range w.servers {
		if w.stopIfLeft(s); s.host == nil {
			w.boot(s)
			w.settle()
		}
		for s.applied < len(w.history) && w.bad == "" {
			w.apply(s)
		}
		for _, o := range w.servers {
			if s != o {
				w.connect(s.id, o.id)
			}
			for l := w.lanes[[2]uint64{o.id, s.id}]; l != nil && len(l.queue) > 0 && w.bad == ""; {
				w.pass(o.id, s.id)
			}
		}
		for len(s.holds) > 0 && w.bad == "" {
			w.leaveAny(s)
		}
		for len(s.near) > 0 && w.bad == "" {
			w.unlockNear(s)
		}
		if w.bad != "" {
			return false
		}
		s.host.Tick(w.now, 0)
		w.carryOut(s)
		w.tellGone(s)
		w.tryAgain(s)
		if len(s.wants) > 0 || s.host.Member().State != view.Open && w.log.Guarded() {
			done = false
		}
	}
	return done
}

// standing says where each server stands.
func (w *world) standing() (text string) {
	for _, s := range w.servers {
		m := s.host.Member()
		text += fmt.Sprintf("server %d is %s in %d, left %d, heard %v, wants %v; ", s.id, m.State, m.Epoch, m.Left, m.Resumed, inOrder(s.wants))
	}
	return text
}

// ofSeed makes the world of a seed: each algorithm has its turn.
func ofSeed(seed uint64, tells bool) *world {
	spec := served.Locks[seed%uint64(len(served.Locks))]
	w := newWorld(seed, spec, 1+int(seed/uint64(len(served.Locks))+2)%4, tells)
	if seed%3 == 0 {
		w.watches = rand.New(rand.NewPCG(seed, 2))
		w.setWatch()
		w.settle()
	}
	if seed%4 != 0 {
		w.nearly = rand.New(rand.NewPCG(seed, 6))
	}
	return w
}

// setWatch changes the watch stack. Its delay is short, so that it suspects members that
// are just late.
func (w *world) setWatch() {
	if w.watches == nil {
		return
	}
	u := view.Use{
		Algorithm: served.Detectors[w.watches.IntN(len(served.Detectors))].Name + "+" + served.Elections[w.watches.IntN(len(served.Elections))].Name,
		Options:   fmt.Sprintf("delay=%d", 200<<w.watches.IntN(8)),
	}
	if w.watches.IntN(8) == 0 {
		u = view.Use{}
	}
	w.say("watch %v", u)
	w.log.SetWatch(u)
}

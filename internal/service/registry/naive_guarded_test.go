package registry

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/version"
)

// naiveGuarded has the members and the guards, written only from the rules. It remembers
// every command, and computes the present state from them.
type naiveGuarded struct {
	epoch       uint64
	members     []naiveSeat
	seats       []naiveSeat // in the order of entering
	coordinator uint64
	guards      map[string]*naiveGuard
	changes     uint64
	turning     bool
	voters      map[uint64]bool
	heirs       []naiveHeir
	watch       string
	quiet       map[string]bool // what was said by whom of which change in which epoch
}

type naiveSeat struct {
	server uint64
	id     SessionID
}

type naiveHeir struct {
	of, seat naiveSeat
	epoch    uint64 // in which it became that
}

// inherits reports whether a seat may have an heir.
func (m *naive) inherits(s *naiveSession, heir view.Seat) bool {
	l, own := &m.guarded, m.guarded.seated(s.id)
	to := naiveSeat{heir.Server, SeatID(heir)}
	live := slices.Contains(l.seats, to) && slices.Contains(l.members, to) && slices.Contains(l.members, *own) && to != *own
	if live {
		l.heirs = append(l.heirs, naiveHeir{*own, to, l.epoch})
	}
	return live
}

type naiveGuard struct {
	use, next string
	change    uint64 // 0 unless it drains
	remove    bool
	made      uint64 // the epoch in which it was
}

// covering returns the longest prefix of a name that has a guard, and that.
func (l *naiveGuarded) covering(name string) (prefix string, g *naiveGuard) {
	for i := 0; i <= len(name); i++ {
		if found := l.guards[name[:i]]; found != nil {
			prefix, g = name[:i], found
		}
	}
	return prefix, g
}

// use is what guards a resource, and drains that nothing is granted of it.
func (l *naiveGuarded) use(k key) (use string, drains bool) {
	if _, g := l.covering(k.name); g != nil && k.class == Lock {
		return g.use, g.change != 0
	}
	return "", false
}

func (l *naiveGuarded) prefixes() (all []string) {
	for prefix := range l.guards {
		all = append(all, prefix)
	}
	sort.Strings(all)
	return all
}

// wanted reports whether seats are.
func (l *naiveGuarded) wanted() bool {
	for _, g := range l.guards {
		if g.use != "" || g.next != "" {
			return true
		}
	}
	return false
}

func (l *naiveGuarded) seated(id SessionID) *naiveSeat {
	for i := range l.seats {
		if l.seats[i].id == id {
			return &l.seats[i]
		}
	}
	return nil
}

// enter is the request of a server for a seat that it does not have.
func (m *naive) enter(c *Command) (Result, *naiveSession) {
	switch {
	case !m.guarded.voters[c.guarding().Server]:
		return Result{Code: NotMember}, nil
	case !m.guarded.wanted():
		return Result{Code: Unavailable}, nil
	case len(m.guarded.seats) >= MaxSeats:
		return Result{Code: Exhausted}, nil
	}
	m.guarded.seats = append(m.guarded.seats, naiveSeat{c.guarding().Server, c.Session})
	return Result{}, m.open(c)
}

// fits reports whether a command is one of its session.
func (m *naive) fits(c *Command) bool {
	seat := m.guarded.seated(c.Session)
	ofSeat := c.Op == OpEnter || c.Op == OpTurn || c.Op == OpQuiet
	switch {
	case seat == nil:
		return !ofSeat && c.guarding().Heir == view.Seat{}
	case c.Op == OpEnter:
		return c.guarding().Server == seat.server
	}
	return ofSeat || c.Op == OpRenew || c.Op == OpClose
}

// say is a turn or a quiet of a seat.
func (m *naive) say(c *Command) Result {
	l, seat, how := &m.guarded, *m.guarded.seated(c.Session), c.guarding()
	switch {
	case how.Epoch != l.epoch:
		return Result{Code: Stale}
	case !slices.Contains(l.members, seat):
		return Result{Code: NotMember}
	case c.Op == OpQuiet && how.Change == 0:
		l.heirs = slices.DeleteFunc(l.heirs, func(h naiveHeir) bool { return h.seat == seat && h.epoch < l.epoch })
		return Result{Code: OK}
	case c.Op == OpQuiet:
		l.quiet[fmt.Sprint(seat, how.Change, how.Epoch)] = true
		return Result{Code: OK}
	case how.Coordinator != 0 && how.Coordinator != seat.server:
		return Result{Code: Invalid}
	}
	if how.Coordinator == 0 || how.Coordinator != l.coordinator {
		l.turning = true
	}
	if how.Coordinator != 0 {
		l.coordinator = how.Coordinator
	}
	return Result{Code: OK}
}

// setGuard is what an operator asks for, or the leader.
func (m *naive) setGuard(c *Command) Result {
	l, how := &m.guarded, *c.guarding()
	if c.Class == View {
		if known := []string{"", "swim+bully", "reliable+le-lann"}; !slices.Contains(known, how.Use.Algorithm) {
			return Result{Code: Invalid}
		}
		l.turning = l.turning || l.watch != how.Use.Algorithm && len(l.members) > 0
		l.watch = how.Use.Algorithm
		return Result{Code: OK}
	}
	g := l.guards[c.Name]
	switch {
	case how.Change != 0 && (g == nil || g.change != how.Change):
		return Result{Code: Stale}
	case how.Change != 0:
		how = Guarding{Use: view.Use{Algorithm: g.use}}
	case how.Remove && g == nil:
		return Result{Code: NotFound}
	case how.Use.Algorithm != "" && !slices.Contains(version.Machines(version.Guarded), how.Use.Algorithm):
		return Result{Code: Invalid}
	}
	if m.blinds(c.Name, &how) {
		return Result{Code: Invalid}
	}
	if g == nil {
		_, cover := l.covering(c.Name)
		g = &naiveGuard{made: l.epoch}
		if cover != nil {
			g.use = cover.use
		}
		l.guards[c.Name] = g
	}
	if next := how.Use.Algorithm; g.change == 0 || g.next != next || g.remove != how.Remove {
		g.change, g.next, g.remove = 0, "", false
		if how.Remove || next != g.use {
			l.changes++
			g.change, g.next, g.remove = l.changes, next, how.Remove
		}
	}
	m.release(c.Name)
	if how.Force && g.change != 0 && g.use == "" {
		for _, k := range m.under(c.Name) {
			if prefix, _ := l.covering(k.name); prefix == c.Name {
				for _, holder := range m.holders(k) {
					m.ask(holder, c.Value)
				}
			}
		}
	}
	return Result{Code: OK}
}

// under returns the claimed locks whose names begin with a prefix, by name.
func (m *naive) under(prefix string) (all []key) {
	for _, claim := range m.claims {
		if claim.key.class == Lock && strings.HasPrefix(claim.key.name, prefix) && !slices.Contains(all, claim.key) {
			all = append(all, claim.key)
		}
	}
	slices.SortFunc(all, func(a, b key) int { return strings.Compare(a.name, b.name) })
	return all
}

// release grants the waiters under a prefix, unless it still drains.
func (m *naive) release(prefix string) {
	for _, k := range m.under(prefix) {
		use, drains := m.guarded.use(k)
		for _, claim := range m.queue(k) {
			if use != "" {
				m.remove(claim)
				m.remember(m.session(claim.session), claim.sequence, Result{Code: Moved})
				m.tell(claim.session, claim.sequence, Result{Code: Moved})
			}
		}
		if !drains {
			m.fill(k)
		}
	}
}

// settle ends an entry: as long as there is something to change, an epoch begins.
func (m *naive) settle() {
	for m.start() {
	}
}

func (m *naive) start() bool {
	l := &m.guarded
	start, over := l.turning, []string{}
	l.turning = false
	for _, prefix := range l.prefixes() {
		if g := l.guards[prefix]; g.change != 0 && m.drained(prefix, g) {
			start, over = true, append(over, prefix)
		}
	}
	for _, prefix := range over {
		g := l.guards[prefix]
		if g.use, g.change, g.next = g.next, 0, ""; g.remove {
			delete(l.guards, prefix)
		}
	}
	target := l.target()
	if !start && slices.Equal(target, l.members) {
		return false
	}
	m.epoch = max(m.epoch, 1) + 1
	m.count = 0
	l.epoch, l.members = m.epoch, target
	for _, prefix := range over {
		m.release(prefix)
	}
	return true
}

func (m *naive) drained(prefix string, g *naiveGuard) bool {
	if g.use != "" {
		return !slices.ContainsFunc(m.guarded.members, func(s naiveSeat) bool { return !m.guarded.quiet[fmt.Sprint(s, g.change, m.guarded.epoch)] })
	}
	covers := func(k key) bool {
		of, _ := m.guarded.covering(k.name)
		return k.class == Lock && of == prefix
	}
	closed := slices.ContainsFunc(m.closed, func(p naiveClosed) bool { return covers(p.key) })
	return !closed && !slices.ContainsFunc(m.under(prefix), func(k key) bool { return covers(k) && len(m.holders(k)) > 0 })
}

// target is the only seat of each server, or the one that takes part.
func (l *naiveGuarded) target() (target []naiveSeat) {
	count := map[uint64]int{}
	for _, s := range l.seats {
		count[s.server]++
	}
	for _, s := range l.seats {
		if count[s.server] == 1 || slices.Contains(l.members, s) {
			target = append(target, s)
		}
	}
	slices.SortFunc(target, func(a, b naiveSeat) int { return int(a.server) - int(b.server) })
	return target
}

// text is what the registry is to show.
func (l *naiveGuarded) text() string {
	var b strings.Builder
	seats := func(seats []naiveSeat) {
		for _, s := range seats {
			fmt.Fprintf(&b, " %d:%s", s.server, sessionName(s.id))
		}
		b.WriteByte(';')
	}
	fmt.Fprintf(&b, "epoch %d:", l.epoch)
	seats(l.members)
	seats(l.seats)
	for _, h := range l.heirs {
		if slices.Contains(l.seats, h.seat) {
			fmt.Fprintf(&b, " %s inherits from %s in %d", sessionName(h.seat.id), sessionName(h.of.id), h.epoch)
		}
	}
	fmt.Fprintf(&b, " %d %q\n", l.coordinator, l.watch)
	for _, prefix := range l.prefixes() {
		g := l.guards[prefix]
		fmt.Fprintf(&b, "%s: %q", prefix, g.use)
		if g.change != 0 {
			fmt.Fprintf(&b, " %d to %q %v:", g.change, g.next, g.remove)
			for _, s := range l.members {
				if l.quiet[fmt.Sprint(s, g.change, l.epoch)] {
					fmt.Fprintf(&b, " %d", s.server)
				}
			}
		}
		fmt.Fprintf(&b, " %v\n", g.made == l.epoch)
	}
	return b.String()
}

// guardedText is what it shows.
func guardedText(l *view.Log) string {
	var b strings.Builder
	fmt.Fprintf(&b, "epoch %d:%s;%s;", l.Epoch, seatsText(l.Members), seatsText(l.Seats))
	for _, h := range l.Heirs {
		fmt.Fprintf(&b, " %s inherits from %s in %d", sessionName(SeatID(h.Seat)), sessionName(SeatID(h.Of)), h.Epoch)
	}
	fmt.Fprintf(&b, " %d %q\n", l.Coordinator, l.Watch.Algorithm)
	for _, g := range l.Guards {
		fmt.Fprintf(&b, "%s: %q", g.Prefix, g.Use.Algorithm)
		if g.Change != 0 {
			fmt.Fprintf(&b, " %d to %q %v:", g.Change, g.Next.Algorithm, g.Remove)
			for _, server := range g.Quiet {
				fmt.Fprintf(&b, " %d", server)
			}
		}
		fmt.Fprintf(&b, " %v\n", g.New)
	}
	return b.String()
}

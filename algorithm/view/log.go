package view

import (
	"cmp"
	"slices"
	"strings"
)

// Seat is the session of one running server process. A server that restarts draws
// another id.
type Seat struct {
	Server uint64 // never 0
	ID     [2]uint64
}

// View lists the members of an epoch. The slice must not be modified.
type View struct {
	Epoch   uint64
	Members []Seat // sorted by server, one seat of each
}

// MaxEpoch is the largest epoch: fences hold it in 23 bits below the sign.
const MaxEpoch = 1<<23 - 1

// Use is what guards the names under a prefix. The zero Use is agreement.
type Use struct {
	Algorithm string
	Options   string
}

// Guarded reports whether an algorithm guards the names, and not agreement.
func (u Use) Guarded() bool { return u.Algorithm != "" }

// Guard says what guards one prefix, and what will guard it.
type Guard struct {
	Prefix string
	Use    Use
	// New says that the prefix was made in this epoch. Use is then that of a
	// shorter prefix, to which its names belong until the next START. So a name
	// never belongs to two prefixes, whether or not members have applied the entry.
	New bool
	// While the guard drains, Change is the number of the change and not 0. After
	// that, Next guards the prefix or, if Remove is set, the guard of a shorter
	// prefix.
	Change     uint64
	Next       Use
	Remove     bool
	Quiet      []uint64   // servers whose seats have reported in this epoch that nothing is held
	Conditions Conditions // of the change
}

// Conditions say how a change of a guard proceeds. Log keeps them and does not interpret
// them.
type Conditions struct {
	Wait int64 // time after which the leader cancels the change, in ns; 0: never
	// Force asks clients that hold something under the prefix to leave, at the
	// request of a principal.
	Force      bool
	Reason, By string
}

// Log is what the entries of the log determine about views and guards; it is a pure
// function of them. Rules V and G. The caller refuses what Log does not allow; Log
// accepts everything that it is told.
type Log struct {
	View
	Seats       []Seat  // live, in the order of entering
	Heirs       []Heir  // in the order in which they became heirs
	Coordinator uint64  // elected, a server, or 0
	Guards      []Guard // sorted by prefix
	Changes     uint64  // the number of the last change of a guard
	Watch       Use     // the detector and election that members run, such as "swim+bully", or none (E1)
	Turning     bool    // a turn is requested at the end of this entry
}

// Heir is the seat at which the clients of an ended seat continue. It stays in the log
// until its server has reported that it has taken over (P2), in an epoch later than
// Epoch, in which that seat ended.
type Heir struct {
	Of, Seat Seat
	Epoch    uint64
}

// MaxHeirs bounds Log.Heirs.
const MaxHeirs = 64

// Enter adds a seat (V2).
func (l *Log) Enter(s Seat) {
	if !slices.Contains(l.Seats, s) {
		l.Seats = append(l.Seats, s)
	}
}

// End removes a seat, because its lease has expired or because it has reported that
// nothing is held (V2).
func (l *Log) End(s Seat) {
	l.Seats = slices.DeleteFunc(l.Seats, func(t Seat) bool { return t == s })
	l.Heirs = slices.DeleteFunc(l.Heirs, func(h Heir) bool { return h.Seat == s })
}

// CanInherit reports whether the clients of a seat may continue at another when it
// ends. Both must be live members, and different (P2).
func (l *Log) CanInherit(s, heir Seat) bool {
	return s != heir && len(l.Heirs) < MaxHeirs && slices.Contains(l.Members, s) && slices.Contains(l.Members, heir) && slices.Contains(l.Seats, heir)
}

// Bequeath ends a seat whose clients continue at an heir (P2).
func (l *Log) Bequeath(s, heir Seat) {
	l.End(s)
	l.Heirs = append(l.Heirs, Heir{s, heir, l.Epoch})
}

// Inherited notes that a seat has taken over everything that it became the heir of
// before this epoch.
func (l *Log) Inherited(s Seat, epoch uint64) {
	if epoch == l.Epoch {
		l.Heirs = slices.DeleteFunc(l.Heirs, func(h Heir) bool { return h.Seat == s && h.Epoch < epoch })
	}
}

// HeirOf returns the seat at which the clients of an ended seat continue, if that is
// known.
func (l *Log) HeirOf(s Seat) (heir Seat, known bool) {
	for _, h := range l.Heirs {
		if h.Of == s {
			return h.Seat, true
		}
	}
	return Seat{}, false
}

// Turn asks for another epoch with the same members: to elect a coordinator, or, if
// that is 0, to let machines be forgotten and fences begin again. It has no effect if
// the epoch is over, or if that server coordinates already (V4).
func (l *Log) Turn(epoch, coordinator uint64) {
	if epoch != l.Epoch || coordinator != 0 && coordinator == l.Coordinator {
		return
	}
	if coordinator != 0 {
		l.Coordinator = coordinator
	}
	l.Turning = true
}

// SetWatch changes the detector and election that members run. All members of an epoch
// run the same ones, so if there are members the entry is START (E1).
func (l *Log) SetWatch(u Use) {
	l.Turning = l.Turning || u != l.Watch && len(l.Members) > 0
	l.Watch = u
}

// Covering returns what guards the names that begin with a prefix, unless a longer
// prefix of some of them has another guard.
func (l *Log) Covering(name string) (u Use) {
	if at := l.longest(name, true); at >= 0 {
		u = l.Guards[at].Use
	}
	return u
}

// GuardOf returns the guard of the longest prefix that a name has, or nil. It must not
// be modified.
func (l *Log) GuardOf(name string) *Guard {
	if at := l.longest(name, true); at >= 0 {
		return &l.Guards[at]
	}
	return nil
}

// Namespace returns the number of the namespace of a name in the present epoch, or -1:
// its index among the guards that are not new (I1).
func (l *Log) Namespace(name string) int {
	at := l.longest(name, false)
	for i := range max(at, 0) {
		if l.Guards[i].New {
			at--
		}
	}
	return at
}

// longest returns the index of the guard of the longest prefix that a name has, or -1.
// Guards made in this epoch count if made is set.
func (l *Log) longest(name string, made bool) int {
	at := -1
	for i := range l.Guards {
		g := &l.Guards[i]
		if strings.HasPrefix(name, g.Prefix) && (made || !g.New) && (at < 0 || len(g.Prefix) > len(l.Guards[at].Prefix)) {
			at = i
		}
	}
	return at
}

// Guarded reports whether an algorithm guards some prefix, or will.
func (l *Log) Guarded() bool {
	return slices.ContainsFunc(l.Guards, func(g Guard) bool { return g.Use.Guarded() || g.Next.Guarded() })
}

// MayGuard reports whether an algorithm guards a name, or will after the changes in progress.
func (l *Log) MayGuard(name string) bool {
	for _, g := range slices.Backward(l.Guards) { // longer prefixes of a name come after shorter ones
		switch {
		case !strings.HasPrefix(name, g.Prefix):
		case g.Use.Guarded() || g.Next.Guarded():
			return true
		case !g.Remove:
			return false
		}
	}
	return false
}

// Clone returns a copy that shares no mutable memory.
func (l *Log) Clone() *Log {
	own := *l
	own.Seats, own.Heirs, own.Guards = slices.Clone(l.Seats), slices.Clone(l.Heirs), slices.Clone(l.Guards)
	for i := range own.Guards {
		own.Guards[i].Quiet = slices.Clone(own.Guards[i].Quiet)
	}
	return &own
}

// Set begins the change of a guard (G1, G2). Setting the present guard ends a change in
// progress. Setting the guard that a change in progress leads to has no effect.
func (l *Log) Set(prefix string, u Use, conditions Conditions) {
	l.change(prefix, u, false, conditions)
}

// Remove begins the change to the guard of a shorter prefix. It does nothing if the
// prefix has no guard of its own.
func (l *Log) Remove(prefix string, conditions Conditions) {
	if l.Find(prefix) != nil {
		l.change(prefix, Use{}, true, conditions)
	}
}

func (l *Log) change(prefix string, u Use, remove bool, conditions Conditions) {
	g := l.Find(prefix)
	if g == nil {
		at, _ := slices.BinarySearchFunc(l.Guards, prefix, func(g Guard, p string) int { return cmp.Compare(g.Prefix, p) })
		l.Guards = slices.Insert(l.Guards, at, Guard{Prefix: prefix, Use: l.Covering(prefix), New: true})
		g = &l.Guards[at]
	}
	if g.Change != 0 && g.Next == u && g.Remove == remove {
		g.Conditions = conditions
		return
	}
	g.Change, g.Next, g.Remove, g.Quiet, g.Conditions = 0, Use{}, false, nil, Conditions{}
	if remove || u != g.Use {
		l.Changes++
		g.Change, g.Next, g.Remove, g.Conditions = l.Changes, u, remove, conditions
	}
}

// Find returns the guard of a prefix, or nil. It must not be modified.
func (l *Log) Find(prefix string) *Guard {
	for i := range l.Guards {
		if l.Guards[i].Prefix == prefix {
			return &l.Guards[i]
		}
	}
	return nil
}

// Quiet notes that a seat has nothing held, asked for or being entered again under the
// prefix with that change. It counts only in its own epoch (G4).
func (l *Log) Quiet(s Seat, change, epoch uint64) {
	if epoch != l.Epoch || !slices.Contains(l.Members, s) {
		return
	}
	for i := range l.Guards {
		if g := &l.Guards[i]; g.Change == change && change != 0 && !slices.Contains(g.Quiet, s.Server) {
			g.Quiet = append(g.Quiet, s.Server)
			slices.Sort(g.Quiet)
		}
	}
}

// Settle ends an entry of the log, and reports whether it is the START of an epoch (V2,
// G5). The new epoch is larger than all earlier ones and than above, the epoch of the
// newest fence. The function reports whether agreement has a hold under a prefix; it is
// called only for prefixes that agreement guards.
func (l *Log) Settle(above uint64, held func(prefix string) bool) (started bool) {
	turning := l.Turning
	l.Turning = false
	if max(l.Epoch, above) >= MaxEpoch {
		return false // V5
	}
	start := l.complete(held) || turning
	target := l.target()
	if !start && slices.Equal(target, l.Members) {
		return false
	}
	l.Epoch = max(l.Epoch, above) + 1
	l.Members = target
	for i := range l.Guards {
		l.Guards[i].Quiet, l.Guards[i].New = nil, false
	}
	return true
}

// complete ends the changes of guards under which nothing is held any more, and reports
// whether there were any.
func (l *Log) complete(held func(prefix string) bool) (any bool) {
	for i := range l.Guards {
		g := &l.Guards[i]
		if g.Change == 0 || !l.drained(g, held) {
			continue
		}
		any = true
		g.Use, g.Change, g.Next, g.Conditions = g.Next, 0, Use{}, Conditions{}
	}
	l.Guards = slices.DeleteFunc(l.Guards, func(g Guard) bool { return g.Remove && g.Change == 0 })
	return any
}

func (l *Log) drained(g *Guard, held func(prefix string) bool) bool {
	if !g.Use.Guarded() {
		return !held(g.Prefix)
	}
	for _, s := range l.Members {
		if !slices.Contains(g.Quiet, s.Server) {
			return false
		}
	}
	return true
}

// target returns the future members: the only live seat of each server or, if it has
// several, the one that is a member already, if any (V3).
func (l *Log) target() []Seat {
	target := []Seat{}
	for _, s := range l.Seats {
		several := slices.ContainsFunc(l.Seats, func(t Seat) bool { return t.Server == s.Server && t != s })
		if !several || slices.Contains(l.Members, s) {
			target = append(target, s)
		}
	}
	slices.SortFunc(target, func(a, b Seat) int { return cmp.Compare(a.Server, b.Server) })
	return target
}

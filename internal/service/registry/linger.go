package registry

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/registry/sorted"
	"github.com/conclave-io/conclave/internal/service/version"
)

// A request to acquire can ask that its place lingers: that it stays closed after the hold has
// ended, until some replicated time. AtLeast counts from the grant, however the hold ends. So a job
// that has run is not started again within the period. LossDelay counts from the end of a hold that
// expired or was dropped, as the lock-delay of Chubby (Burrows, 2006). The later of the two counts.
//
// The place that lingers is the one that was held: of a lock with the limit n, up to n places can
// linger. A shared hold has no place of its own, so it cannot linger.

// MaxLinger bounds both durations, in ns.
const MaxLinger = 7 * 24 * 3600 * 1e9

// entryLinger is the first format of entries that has these durations.
var entryLinger = version.At(version.Linger).Entry

// ForLinger reports whether only a level at which places can linger can express a command.
func (c *Command) ForLinger() bool { return c.AtLeast != 0 || c.LossDelay != 0 || c.Op == OpTime }

// LingerSize returns the largest approximate size of the place that a request to acquire can leave.
func (c *Command) LingerSize() int {
	if c.AtLeast == 0 && c.LossDelay == 0 {
		return 0
	}
	return lingerBytes(c.Name, &party{}) + 3*MaxText // owner, host and program
}

// hasLinger reports whether places can linger at a level.
func hasLinger(level uint32) bool { return level >= version.Linger }

// Linger describes a place that stays closed after its hold has ended, for people.
type Linger struct {
	Fence   uint64 // of the hold
	Since   int64  // wall clock of the leader at the grant, ns since 1970
	Until   int64  // about when the place opens, by the wall clock of the present leader
	Owner   string // the principal whose session held it
	Host    string
	PID     int64
	Program string
}

// linger is such a place. It never changes.
type linger struct {
	name  string
	of    *party
	fence uint64
	since int64
	until int64 // replicated time
	limit uint32
	class Class
}

func (l *linger) key() key { return key{l.class, l.name} }

// shown describes the place at the time of an entry.
func (l *linger) shown(at *head) Linger {
	return Linger{
		Fence: l.fence, Since: l.since, Until: at.wall + l.until - at.now,
		Owner: l.of.owner, Host: l.of.host, PID: l.of.pid, Program: l.of.program,
	}
}

// lingers are the places that linger: in the order in which they open, by name, and counted by
// name.
type lingers struct {
	byTime, byName *sorted.Set[*linger]
	counts         map[key]int // versions have none
}

func newLingers() lingers {
	return lingers{
		byTime: sorted.New(func(a, b *linger) bool {
			return a.until < b.until || a.until == b.until && a.fence < b.fence
		}),
		byName: sorted.New(func(a, b *linger) bool {
			switch {
			case a.class != b.class:
				return a.class < b.class
			case a.name != b.name:
				return a.name < b.name
			}
			return a.fence < b.fence
		}),
		counts: make(map[key]int),
	}
}

// noLingers are the places of every version in which none linger.
var noLingers = newLingers()

// copy returns the places as they are now.
func (ls *lingers) copy() lingers {
	if ls.len() == 0 {
		return noLingers
	}
	return lingers{byTime: ls.byTime.Copy(), byName: ls.byName.Copy()}
}

// len returns the number of places.
func (ls *lingers) len() int { return ls.byTime.Len() }

// next returns the place that opens first, or nil.
func (ls *lingers) next() (first *linger) {
	if ls.len() > 0 {
		ls.byTime.Scan(func(l *linger) bool {
			first = l
			return false
		})
	}
	return first
}

// closed returns how many places of a resource linger.
func (ls *lingers) closed(k key) int {
	if len(ls.counts) == 0 {
		return 0
	}
	return ls.counts[k]
}

// first returns the place of a resource with the smallest fence, or nil if none lingers.
func (ls *lingers) first(k key) *linger {
	for l := range ls.from(&linger{class: k.class, name: k.name}) {
		if l.key() == k {
			return l
		}
		break
	}
	return nil
}

// of returns the places of a resource that linger, by fence.
func (ls *lingers) of(k key) (places []*linger) {
	for l := range ls.from(&linger{class: k.class, name: k.name}) {
		if l.key() != k {
			break
		}
		places = append(places, l)
	}
	return places
}

// with returns the places of a resource that linger, or the one with a fence, by fence.
func (ls *lingers) with(k key, fence uint64) []*linger {
	if ls.closed(k) == 0 {
		return nil
	}
	return slices.DeleteFunc(ls.of(k), func(l *linger) bool { return fence != 0 && l.fence != fence })
}

// from returns the places from one on, by class, name and fence.
func (ls *lingers) from(first *linger) iter.Seq[*linger] {
	return func(yield func(*linger) bool) {
		if ls.len() > 0 {
			ls.byName.Ascend(first, yield)
		}
	}
}

// names returns the names of a class with places that linger, from one on, one at a time. The caller
// calls stop when it needs no more.
func (ls *lingers) names(class Class, from string) (next func() (string, bool), stop func()) {
	if ls.len() == 0 {
		return func() (string, bool) { return "", false }, func() {}
	}
	return iter.Pull(func(yield func(string) bool) {
		last := ""
		for l := range ls.from(&linger{class: class, name: from}) {
			if l.class != class {
				return
			}
			if l.name != last && !yield(l.name) {
				return
			}
			last = l.name
		}
	})
}

// under returns the places of locks whose names start with a prefix, by name.
func (ls *lingers) under(prefix string) iter.Seq[*linger] {
	return func(yield func(*linger) bool) {
		for l := range ls.from(&linger{class: Lock, name: prefix}) {
			if l.class != Lock || !strings.HasPrefix(l.name, prefix) || !yield(l) {
				return
			}
		}
	}
}

// add adds a place.
func (ls *lingers) add(l *linger) {
	ls.byTime.Put(l)
	ls.byName.Put(l)
	ls.counts[l.key()]++
}

// remove removes a place.
func (ls *lingers) remove(l *linger) {
	ls.byTime.Remove(l)
	ls.byName.Remove(l)
	if ls.counts[l.key()]--; ls.counts[l.key()] == 0 {
		delete(ls.counts, l.key())
	}
}

// due returns the places that open at a replicated time at the latest, in the order in which they do.
func (ls *lingers) due(now int64) (places []*linger) {
	if ls.len() > 0 {
		ls.byTime.Scan(func(l *linger) bool {
			if l.until <= now {
				places = append(places, l)
			}
			return l.until <= now
		})
	}
	return places
}

// owner returns the principal whose session held a place of a resource that lingers, or "".
func (ls *lingers) owner(k key) string {
	if l := ls.first(k); l != nil {
		return l.of.owner
	}
	return ""
}

// startLinger adds a place that lingers.
func (st *state) startLinger(l *linger) {
	st.lingers.add(l)
	st.tally.bytes += l.bytes()
	st.tally.digest += l.hash()
	st.control.countLinger(l, 1)
}

// until returns to which replicated time the place of a hold lingers that ends now.
func (c *claim) until(now int64, how Ending) int64 {
	until := c.at + c.atLeast
	if how == Expired || how == Dropped {
		until = max(until, now+c.lossDelay)
	}
	return until
}

// lingers reports whether the place of a claim can linger.
func (t *extras) lingers() bool { return t.atLeast != 0 || t.lossDelay != 0 }

// place returns the place of a hold that ends now, if it is to linger, or nil.
func (c *claim) place(now int64, how Ending) *linger {
	if !c.lingers() || c.until(now, how) <= now {
		return nil
	}
	return &linger{
		class: c.resource.class, name: c.resource.name, limit: c.resource.limit,
		fence: c.fence, since: c.since, until: c.until(now, how), of: c.session.party,
	}
}

// reopen opens places that linger, and grants them.
func (r *Registry) reopen(places []*linger, fx *Effects) {
	var opened []key
	seen := make(map[key]bool)
	for _, l := range places {
		r.lingers.remove(l)
		r.tally.bytes -= l.bytes()
		r.tally.digest -= l.hash()
		r.control.countLinger(l, -1)
		if k := l.key(); !seen[k] {
			seen[k] = true
			opened = append(opened, k)
		}
	}
	for _, k := range opened {
		if res := r.find(k.class, k.name); res != nil {
			r.settle(r.thaw(res), fx)
		} else {
			fx.opened(k)
		}
	}
}

// bars refuses a request because of its terms or of places that linger, of which there are so many of
// its resource, and reports whether it did.
func (st *state) bars(c *Command, at *head, asked *extras, closed int, result *Result) bool {
	if at.home && asked.lingers() {
		*result = Result{Code: Invalid, Message: "an algorithm guards the name: only agreement keeps a name closed after its hold"}
		return true
	}
	if closed == 0 {
		return false
	}
	place, res, limit := st.lingers.first(key{c.Class, c.Name}), st.find(c.Class, c.Name), max(c.Limit, 1)
	switch {
	case place.limit != limit:
		*result = Result{Code: Invalid, Message: fmt.Sprintf("%s has the limit %d until its last place opens, not %d", quoted(c.Name), place.limit, limit)}
	case !c.Try || res == nil && asked.fits(nil, limit, closed) || res != nil && res.admits(asked, closed):
		return false
	case res.held():
		return false // the holders are in the way too
	default:
		*result = Result{Code: Held, Message: quoted(c.Name) + " stays closed after its last hold", Closed: new(place.shown(at))}
	}
	return true
}

// Opens returns the replicated time at which the next place opens, and whether there is one.
func (st *state) Opens() (at int64, some bool) {
	if l := st.lingers.next(); l != nil {
		return l.until, true
	}
	return 0, false
}

// lingerer returns what lingers or may linger, or "".
func (v *Version) lingerer() (name string) {
	if l := v.lingers.next(); l != nil {
		return quoted(l.name) + ", which stays closed after its last hold"
	}
	if v.lingering > 0 {
		v.names.Scan(func(res *resource) bool {
			for _, c := range slices.Concat(res.holders(), res.queue()) {
				if c.lingers() {
					name = fmt.Sprintf("request %d of %v for %s, which is to stay closed afterwards", c.sequence, c.session.id, quoted(res.name))
				}
			}
			return name == ""
		})
	}
	return name
}

func (c *Command) validateLinger() string {
	switch {
	case c.AtLeast == 0 && c.LossDelay == 0:
		return ""
	case c.Shared:
		return "a shared hold has no place of its own, which could stay closed after it"
	case c.AtLeast < 0 || c.AtLeast > MaxLinger:
		return fmt.Sprintf("the name is to stay closed for at least %d ms: it must be 0 to 7 days", c.AtLeast/1e6)
	case c.LossDelay < 0 || c.LossDelay > MaxLinger:
		return fmt.Sprintf("the delay after a loss is %d ms: it must be 0 to 7 days", c.LossDelay/1e6)
	}
	return ""
}

func (l *linger) hash() uint64 {
	return sum(3, l.key().sum(), l.fence, uint64(l.since), uint64(l.until), uint64(l.limit), l.of.hashes.owner, l.of.hashes.host, uint64(l.of.pid), l.of.hashes.program)
}

// bytes returns the approximate size of the encoding.
func (l *linger) bytes() int { return lingerBytes(l.name, l.of) }

func lingerBytes(name string, of *party) int {
	return 48 + len(name) + len(of.owner) + len(of.host) + len(of.program)
}

func (v *Version) appendLingers(b []byte) []byte {
	if !hasLinger(v.level) {
		return b
	}
	b = wire.AppendUint(b, uint64(v.lingers.len()))
	v.lingers.byName.Scan(func(l *linger) bool {
		b = append(b, byte(l.class))
		b = wire.AppendBytes(b, l.name)
		b = wire.AppendUint(b, uint64(l.limit))
		b = wire.AppendUint(b, l.fence)
		b = wire.AppendInt(b, l.since)
		b = wire.AppendInt(b, l.until)
		b = wire.AppendBytes(b, l.of.owner)
		b = wire.AppendBytes(b, l.of.host)
		b = wire.AppendInt(b, l.of.pid)
		b = wire.AppendBytes(b, l.of.program)
		return true
	})
	return b
}

func (d *decoder) readLingers() {
	if !hasLinger(d.reg.level) {
		return
	}
	before := d.reg.lingers.len()
	n := 0
	each(d.rd, func() {
		l := &linger{
			class: Class(d.rd.Byte()), name: d.rd.String(), limit: readLimit(d.rd),
			fence: d.rd.Uint(), since: d.rd.Int(), until: d.rd.Int(),
		}
		l.of = newParty(d.rd.String(), d.rd.String(), d.rd.Int(), d.rd.String())
		if l.class >= classes {
			d.rd.Fail(fmt.Errorf("a place of %.64q that lingers: unknown class %d", l.name, l.class))
			return
		}
		d.reg.startLinger(l)
		n++
	})
	if d.rd.Err() == nil && d.reg.lingers.len() != before+n {
		d.rd.Fail(fmt.Errorf("%d places linger, and some are stored twice", n))
	}
}

// check checks the places that linger in a registry.
func (ls *lingers) check(r *Registry) error {
	claims := 0
	for res := range r.names.Scan {
		for _, c := range slices.Concat(res.holders(), res.queue()) {
			if c.lingers() {
				claims++
			}
		}
	}
	total := 0
	for l := range ls.from(&linger{}) {
		places := ls.of(l.key())
		res := r.resources.get(l.key())
		switch {
		case l.until <= r.now:
			return fmt.Errorf("%q: a place lingers until %d, and it is %d", l.name, l.until, r.now)
		case l.fence > r.fence():
			return fmt.Errorf("%q: the fence %d of a place that lingers is above the newest", l.name, l.fence)
		case len(places) != ls.closed(l.key()):
			return fmt.Errorf("%q: %d places linger, %d are counted", l.name, len(places), ls.closed(l.key()))
		case res != nil && !res.gone() && res.limit != l.limit:
			return fmt.Errorf("%q: has the limit %d, a place that lingers %d", l.name, res.limit, l.limit)
		case res != nil && len(res.holders())+len(places) > int(l.limit):
			return fmt.Errorf("%q: %d hold it and %d places linger, the limit is %d", l.name, len(res.holders()), len(places), l.limit)
		}
		total++
	}
	switch {
	case total != ls.byTime.Len():
		return fmt.Errorf("%d places linger by name, %d by time", total, ls.byTime.Len())
	case claims != r.lingering:
		return fmt.Errorf("%d claims may linger, %d are counted", claims, r.lingering)
	case !hasLinger(r.level) && total+claims > 0:
		return fmt.Errorf("level %d: %d places linger and %d claims may", r.level, total, claims)
	}
	return nil
}

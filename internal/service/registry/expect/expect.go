// Package expect has the rules that name the locks and elections that are to be held again and
// again, with how the last hold of each ended. It never decides whether a rule is kept: nothing
// happens when a name is not held, so no log entry could say so. Readers decide, with their clocks.
package expect

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/conclave-io/conclave/internal/kit/wire"
)

// Bounds of rules.
const (
	// MostRules bounds the rules of a cluster, and with them the series in metrics.
	MostRules = 256
	// MinPeriod and MaxPeriod bound the period of a rule, in ns.
	MinPeriod = 1e9
	MaxPeriod = 366 * 24 * 3600 * 1e9
)

// Rule says that a name is to be held again at the latest one period after its last hold has ended.
// A Rule never changes.
type Rule struct {
	// Class and Name identify the lock or election. The numbers of classes are those of the registry.
	Class uint8
	Name  string
	// Period is in ns.
	Period int64
	// Set is when the name became one with a rule. By is the principal that has set the rule as it
	// is now, empty if it is anonymous.
	Set Moment
	By  string
	// Last is the hold that ended last since then; zero if none has.
	Last Hold
}

// Moment is the time of a log entry.
type Moment struct {
	// Wall is the wall clock of the leader, in ns since 1970, which may be wrong. Replicated is the
	// replicated time, in ns.
	Wall, Replicated int64
}

// Hold is a hold that has ended.
type Hold struct {
	Fence uint64
	Since int64 // the wall clock of the leader at the grant, in ns since 1970
	Until Moment
	// Owner is the principal whose session held it. The others are for people.
	Owner, Host, Program string
	PID                  int64
	// How is how it ended. The numbers are those of the registry.
	How uint8
}

// Idle returns for how long a name that nobody holds has not been held, or has not been since its
// rule was set, given the time of the reader. It is the longer one of what the two clocks say.
// Replicated time misses what passed between two leaders and the entries of each, and runs ahead of
// nobody's clock. So a wrong wall clock can make the result too large, and never smaller than that.
func (r *Rule) Idle(now Moment) int64 {
	from := r.Set
	if r.Last.Fence != 0 {
		from = r.Last.Until
	}
	return max(0, less(now.Wall, from.Wall), less(now.Replicated, from.Replicated))
}

// less returns a-b, or the nearest number there is.
func less(a, b int64) int64 {
	switch d := a - b; {
	case a >= 0 && b < 0 && d < 0:
		return math.MaxInt64
	case a < 0 && b >= 0 && d > 0:
		return math.MinInt64
	default:
		return d
	}
}

// Validate returns what is wrong with a period, or "".
func Validate(period int64) string {
	if period < MinPeriod || period > MaxPeriod {
		return fmt.Sprintf("every: %d ms: must be between 1 s and 366 days", period/1e6)
	}
	return ""
}

func (r *Rule) key() key { return key{r.Class, r.Name} }

type key struct {
	class uint8
	name  string
}

func (k key) compare(other key) int {
	return cmp.Or(cmp.Compare(k.class, other.class), cmp.Compare(k.name, other.name))
}

func (r *Rule) append(b []byte) []byte {
	b = wire.AppendBytes(append(b, r.Class), r.Name)
	b = r.Set.append(wire.AppendInt(b, r.Period))
	b = wire.AppendBytes(b, r.By)
	if b = wire.AppendUint(b, r.Last.Fence); r.Last.Fence == 0 {
		return b
	}
	b = r.Last.Until.append(wire.AppendInt(b, r.Last.Since))
	b = wire.AppendBytes(wire.AppendBytes(b, r.Last.Owner), r.Last.Host)
	return append(wire.AppendBytes(wire.AppendInt(b, r.Last.PID), r.Last.Program), r.Last.How)
}

func readRule(rd *wire.Reader) *Rule {
	r := &Rule{Class: rd.Byte(), Name: rd.String(), Period: rd.Int(), Set: readMoment(rd), By: rd.String()}
	if r.Last.Fence = rd.Uint(); r.Last.Fence == 0 {
		return r
	}
	r.Last.Since, r.Last.Until = rd.Int(), readMoment(rd)
	r.Last.Owner, r.Last.Host, r.Last.PID, r.Last.Program, r.Last.How = rd.String(), rd.String(), rd.Int(), rd.String(), rd.Byte()
	return r
}

func (m Moment) append(b []byte) []byte {
	return wire.AppendInt(wire.AppendInt(b, m.Wall), m.Replicated)
}

func readMoment(rd *wire.Reader) Moment { return Moment{rd.Int(), rd.Int()} }

// Rules are the rules of a cluster. They never change: each change makes new ones, so versions of the
// state can share them. Nil has no rules.
type Rules struct {
	list []*Rule // by class and name
	// bytes is the approximate size of the encoding without the last holds. digest is the sum of the
	// hashes of all rules. Both follow from the list.
	bytes  int
	digest uint64
}

// Len returns the number of rules.
func (rs *Rules) Len() int { return len(rs.All()) }

// All returns the rules by class and name. The caller must not change the list.
func (rs *Rules) All() []*Rule {
	if rs == nil {
		return nil
	}
	return rs.list
}

// Size returns the approximate size of the encoding. Each rule counts with a last hold whose texts have
// together so many bytes: the end of a hold makes nothing larger.
func (rs *Rules) Size(texts int) int {
	if rs == nil {
		return 0
	}
	const last = 56 // bytes of a hold at most, without its texts
	return 4 + rs.bytes + rs.Len()*(last+texts)
}

// Digest returns a hash of the rules; 0 if there are none.
func (rs *Rules) Digest() uint64 {
	if rs == nil {
		return 0
	}
	return rs.digest
}

// Find returns the rule of a name, or nil.
func (rs *Rules) Find(class uint8, name string) *Rule {
	if rs == nil {
		return nil
	}
	if at, found := rs.search(key{class, name}); found {
		return rs.list[at]
	}
	return nil
}

func (rs *Rules) search(k key) (at int, found bool) {
	return slices.BinarySearchFunc(rs.All(), k, func(r *Rule, k key) int { return r.key().compare(k) })
}

// With returns the rules with one more, or with one replaced.
func (rs *Rules) With(r Rule) *Rules {
	at, found := rs.search(r.key())
	next := rs.clone()
	if found {
		next.count(next.list[at], -1)
		next.list[at] = &r
	} else {
		next.list = slices.Insert(next.list, at, &r)
	}
	next.count(&r, 1)
	return next
}

// Without returns the rules without that of a name.
func (rs *Rules) Without(class uint8, name string) *Rules {
	at, found := rs.search(key{class, name})
	switch {
	case !found:
		return rs
	case rs.Len() == 1:
		return nil
	}
	next := rs.clone()
	next.count(next.list[at], -1)
	next.list = slices.Delete(next.list, at, at+1)
	return next
}

// Ended returns the rules after a hold of a name with a rule has ended.
func (rs *Rules) Ended(rule *Rule, last Hold) *Rules {
	next := *rule
	next.Last = last
	return rs.With(next)
}

func (rs *Rules) clone() *Rules {
	if rs == nil {
		return new(Rules)
	}
	return &Rules{slices.Clone(rs.list), rs.bytes, rs.digest}
}

// count counts a rule that is added, or removed, in what follows from the list.
func (rs *Rules) count(r *Rule, more int) {
	rs.bytes += more * (40 + len(r.Name) + len(r.By))
	rs.digest += uint64(more) * xxhash.Sum64(r.append(nil))
}

// Append appends the encoded rules to b.
func (rs *Rules) Append(b []byte) []byte {
	b = wire.AppendUint(b, uint64(rs.Len()))
	for _, r := range rs.All() {
		b = r.append(b)
	}
	return b
}

// Read reads what Append wrote.
func Read(rd *wire.Reader) *Rules {
	var rs *Rules
	for n := rd.Count(); n > 0 && rd.Err() == nil; n-- {
		r := readRule(rd)
		switch {
		case rd.Err() != nil:
		case rs.Len() > 0 && rs.list[rs.Len()-1].key().compare(r.key()) >= 0:
			rd.Fail(fmt.Errorf("the rule that %.64q is expected: out of order, or stored twice", r.Name))
		case Validate(r.Period) != "" || rs.Len() == MostRules:
			rd.Fail(fmt.Errorf("the rule that %.64q is expected: one too many, or %s", r.Name, Validate(r.Period)))
		default:
			rs = rs.With(*r)
		}
	}
	return rs
}

package registry

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/internal/kit/wire"
)

const (
	// MaxPast is the number of ended holds remembered for a resource, and maxPastNames the
	// number of resources: those whose holds ended last.
	MaxPast      = 16
	maxPastNames = 1024
)

// Ending is how a hold ended. The numbers are those of the public interface.
type Ending uint8

// The endings.
const (
	Released Ending = 1 + iota // by its holder
	Closed                     // with its session, by its holder
	Expired                    // with its session, which was not renewed
	Dropped                    // the holder was asked to leave and did not do so in time

	endings
)

// Ended describes a hold that has ended, for people.
type Ended struct {
	Fence   uint64
	Since   int64 // wall clock of the leader at the grant, ns since 1970
	Until   int64 // and at the end
	Host    string
	PID     int64
	Program string
	How     Ending
	Reason  string // why the holder was asked to leave, if it was
	Owner   string // the principal whose session held it
	By      string // the principal that asked the holder to leave, if one did
}

// ending is an Ended as it is kept: small, and quick to hash.
type ending struct {
	fence        uint64
	since, until int64
	of           *party
	asked        *asked // nil if nobody asked the holder to leave
	how          Ending
}

// asked is why a holder was asked to leave, and by which principal.
type asked struct{ reason, by string }

// request returns why the holder was asked to leave; it is empty if it was not.
func (e *ending) request() asked {
	if e.asked == nil {
		return asked{}
	}
	return *e.asked
}

// shown returns the ending for people.
func (e *ending) shown() Ended {
	request := e.request()
	return Ended{
		Fence: e.fence, Since: e.since, Until: e.until, Host: e.of.host, PID: e.of.pid, Program: e.of.program,
		How: e.how, Reason: request.reason, Owner: e.of.owner, By: request.by,
	}
}

// record is what is remembered of one resource: how its last holds ended.
type record struct {
	class Class
	name  string
	named uint64 // the sum of its key
	// generation is the registry's generation when this became its own.
	generation uint64
	ended      []ending // a ring, once there are MaxPast
	next       int      // where in ended the next one goes

	// digest is the record's part of the registry's digest. It is computed from the sum
	// of the hashes of all endings except the newest; fresh is how many those are.
	digest, sum uint64
	fresh       int

	// older and newer link all records into a list; versions do not read them.
	older, newer *record
}

func (rec *record) key() key { return key{rec.class, rec.name} }

// recent finds the current records. The ends of the list are those whose hold ended last,
// and whose hold ended longest ago.
type recent struct {
	table[key, *record]
	newest, oldest *record
}

// find returns the record with the key, or nil. While many want one lock, it is the newest record.
func (l *recent) find(k key) *record {
	if l.newest != nil && l.newest.key() == k {
		return l.newest
	}
	return l.get(k)
}

// inOrder returns all records, the newest last.
func (l *recent) inOrder() []*record {
	records := make([]*record, 0, l.len())
	for rec := l.oldest; rec != nil; rec = rec.newer {
		records = append(records, rec)
	}
	return records
}

// keep remembers how a hold ended.
func (l *recent) keep(k key, e *ending, generation uint64, t *tally) {
	rec := l.find(k)
	if rec == nil {
		rec = l.makeRoom(generation, t)
		rec.class, rec.name, rec.named, rec.generation = k.class, k.name, k.sum(), generation
		l.put(rec)
		t.bytes += rec.bytes()
	} else {
		l.unlink(rec)
	}
	if rec.generation != generation {
		own := *rec
		own.generation, own.ended = generation, slices.Clone(rec.ended)
		rec = &own
		l.put(rec)
	}
	l.link(rec)
	t.bytes += e.bytes()
	if len(rec.ended) < MaxPast {
		rec.ended = append(rec.ended, *e)
		rec.fresh++
		return
	}
	oldest := &rec.ended[rec.next]
	t.bytes -= oldest.bytes()
	if rec.fresh < MaxPast {
		rec.sum -= oldest.hash()
		rec.fresh++
	}
	*oldest = *e
	rec.next = (rec.next + 1) % MaxPast
}

// makeRoom removes a record if there are too many, and returns an empty one.
func (l *recent) makeRoom(generation uint64, t *tally) *record {
	oldest := l.oldest
	if l.len() < maxPastNames {
		return new(record)
	}
	l.unlink(oldest)
	l.remove(oldest.key())
	t.bytes -= oldest.bytes()
	for i := range oldest.ended {
		t.bytes -= oldest.ended[i].bytes()
	}
	t.digest -= oldest.digest
	if oldest.generation != generation {
		return new(record) // a version shares it
	}
	clear(oldest.ended)
	*oldest = record{ended: oldest.ended[:0]}
	return oldest
}

// remember records how a hold ended that ends now. Its place lingers if it asked for that.
func (r *Registry) remember(c *claim, how Ending) {
	if l := c.place(r.now, how); l != nil {
		r.startLinger(l)
	}
	r.noteEnd(c, how)
	r.reports.ended(c, how, r.wall)
	var e ending
	e.fence, e.since, e.until, e.of, e.how = c.fence, c.since, r.wall, c.session.party, how
	if c.reason != "" || c.by != "" {
		e.asked = &asked{c.reason, c.by}
	}
	r.recent.keep(c.resource.key(), &e, r.generation, &r.tally)
}

func (l *recent) link(rec *record) {
	rec.older, rec.newer = l.newest, nil
	if l.newest != nil {
		l.newest.newer = rec
	} else {
		l.oldest = rec
	}
	l.newest = rec
}

func (l *recent) unlink(rec *record) {
	if rec.newer != nil {
		rec.newer.older = rec.older
	} else {
		l.newest = rec.older
	}
	if rec.older != nil {
		rec.older.newer = rec.newer
	} else {
		l.oldest = rec.newer
	}
}

// inOrder returns the endings, the oldest first.
func (rec *record) inOrder() []Ended {
	all := make([]Ended, 0, len(rec.ended))
	for i := range rec.ended {
		all = append(all, rec.ended[(rec.next+i)%len(rec.ended)].shown())
	}
	return all
}

func (v *Version) appendPast(b []byte) []byte {
	b = wire.AppendUint(b, uint64(len(v.past)))
	for _, rec := range v.past {
		b = append(b, byte(rec.class))
		b = wire.AppendBytes(b, rec.name)
		b = wire.AppendUint(b, uint64(len(rec.ended)))
		for _, e := range rec.inOrder() {
			b = wire.AppendUint(b, e.Fence)
			b = wire.AppendInt(b, e.Since)
			b = wire.AppendInt(b, e.Until)
			b = wire.AppendBytes(b, e.Host)
			b = wire.AppendInt(b, e.PID)
			b = wire.AppendBytes(b, e.Program)
			b = append(b, byte(e.How))
			b = wire.AppendBytes(b, e.Reason)
			b = wire.AppendBytes(b, e.Owner)
			b = wire.AppendBytes(b, e.By)
		}
	}
	return b
}

func (d *decoder) readPast() {
	parties := make(map[party]*party)
	each(d.rd, func() {
		k := key{class: Class(d.rd.Byte()), name: d.rd.String()}
		if d.reg.recent.get(k) != nil || k.class >= classes || d.reg.recent.len() == maxPastNames {
			d.rd.Fail(fmt.Errorf("past of %.64q: there twice, of an unknown class, or one too many", k.name))
			return
		}
		n := 0
		each(d.rd, func() {
			e := ending{fence: d.rd.Uint(), since: d.rd.Int(), until: d.rd.Int()}
			host, pid, program := d.rd.String(), d.rd.Int(), d.rd.String()
			e.how = Ending(d.rd.Byte())
			reason, owner, by := d.rd.String(), d.rd.String(), d.rd.String()
			if n++; n > MaxPast || e.how == 0 || e.how >= endings {
				d.rd.Fail(fmt.Errorf("the past of %q has the ending %d, or more than %d", k.name, e.how, MaxPast))
				return
			}
			of := newParty(owner, host, pid, program)
			if e.of = parties[*of]; e.of == nil {
				e.of, parties[*of] = of, of
			}
			if reason != "" || by != "" {
				e.asked = &asked{reason, by}
			}
			d.reg.recent.keep(k, &e, d.reg.generation, &d.reg.tally)
		})
	})
}

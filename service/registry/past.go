package registry

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/internal/wire"
)

const (
	// MaxPast is how many ended holds of a resource are remembered, and
	// maxPastNames of how many resources: those of which a hold ended last.
	MaxPast      = 16
	maxPastNames = 1024
)

// Ending is how a hold ended. The numbers are those of the public interface.
type Ending uint8

// The endings.
const (
	Released Ending = 1 + iota // by its holder
	Closed                     // with its session, by its holder
	Expired                    // with its session, for want of renewals
	Dropped                    // the holder was asked to leave, and did not in time

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

// past remembers how the last holds ended.
type past struct {
	byKey map[key]*record
	// newest and oldest are the ends of a list of all records, by when a hold of
	// theirs ended last.
	newest, oldest *record
	bytes          int // about, when encoded
}

// record is what is remembered of one resource.
type record struct {
	key          key
	ended        []Ended // a ring, once there are MaxPast
	next         int     // where in ended the next one goes
	older, newer *record
}

func newPast() past { return past{byKey: make(map[key]*record)} }

func (p *past) add(c *claim, now int64, how Ending) {
	s := c.session
	p.note(key{c.resource.class, c.resource.name}, Ended{
		Fence: c.fence, Since: c.since, Until: now,
		Host: s.host, PID: s.pid, Program: s.program, How: how, Reason: c.reason, Owner: s.owner, By: c.by,
	})
}

func (p *past) note(k key, e Ended) {
	rec := p.byKey[k]
	if rec == nil {
		rec = p.fresh()
		rec.key = k
		p.byKey[k] = rec
		p.bytes += rec.size()
	} else {
		p.unlink(rec)
	}
	p.link(rec)
	p.bytes += e.size()
	if len(rec.ended) < MaxPast {
		rec.ended = append(rec.ended, e)
		return
	}
	p.bytes -= rec.ended[rec.next].size()
	rec.ended[rec.next] = e
	rec.next = (rec.next + 1) % MaxPast
}

// fresh returns an empty record: the oldest, if there are enough.
func (p *past) fresh() *record {
	if len(p.byKey) < maxPastNames {
		return new(record)
	}
	rec := p.oldest
	p.unlink(rec)
	p.bytes -= rec.size()
	delete(p.byKey, rec.key)
	clear(rec.ended)
	rec.ended, rec.next = rec.ended[:0], 0
	return rec
}

func (p *past) link(rec *record) {
	rec.older, rec.newer = p.newest, nil
	if p.newest != nil {
		p.newest.newer = rec
	} else {
		p.oldest = rec
	}
	p.newest = rec
}

func (p *past) unlink(rec *record) {
	if rec.newer != nil {
		rec.newer.older = rec.older
	} else {
		p.newest = rec.older
	}
	if rec.older != nil {
		rec.older.newer = rec.newer
	} else {
		p.oldest = rec.newer
	}
}

// of returns how the last holds of a resource ended, the newest first.
func (p *past) of(k key) []Ended {
	rec := p.byKey[k]
	if rec == nil {
		return nil
	}
	ended := rec.inOrder()
	slices.Reverse(ended)
	return ended
}

// inOrder returns the endings, the oldest first.
func (rec *record) inOrder() []Ended {
	return slices.Concat(rec.ended[rec.next:], rec.ended[:rec.next])
}

func (p *past) append(b []byte) []byte {
	b = wire.AppendUint(b, uint64(len(p.byKey)))
	for rec := p.oldest; rec != nil; rec = rec.newer {
		b = append(b, byte(rec.key.class))
		b = wire.AppendBytes(b, rec.key.name)
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

func (p *past) read(rd *wire.Reader) {
	each(rd, func() {
		k := key{class: Class(rd.Byte()), name: rd.String()}
		if k.class >= classes || p.byKey[k] != nil || len(p.byKey) == maxPastNames {
			rd.Fail(fmt.Errorf("the past of %q is there twice, or of an unknown class, or one too many", k.name))
			return
		}
		n := 0
		each(rd, func() {
			e := Ended{
				Fence: rd.Uint(), Since: rd.Int(), Until: rd.Int(),
				Host: rd.String(), PID: rd.Int(), Program: rd.String(),
				How: Ending(rd.Byte()), Reason: rd.String(), Owner: rd.String(), By: rd.String(),
			}
			if n++; n > MaxPast || e.How == 0 || e.How >= endings {
				rd.Fail(fmt.Errorf("the past of %q has the ending %d, or more than %d", k.name, e.How, MaxPast))
				return
			}
			p.note(k, e)
		})
	})
}

package audit

import (
	"crypto/sha256"
	"sort"
	"time"

	"github.com/conclave-io/conclave/internal/service/registry"
)

// againAfter is the time after which a repeated refusal is reported again, in ns.
const againAfter = int64(time.Minute)

// Cursor is the position of a reader in the audit trail. Its zero value is at the
// beginning.
type Cursor struct{ acts, refusals mark }

// mark is the last record of a chain that the reader has.
type mark struct {
	number, count, term uint64
	hash                [sha256.Size]byte
	told                int64 // when the reader got it, ns
}

// Entry is the next record for a reader, or a gap.
type Entry struct {
	Chain    string
	Previous [sha256.Size]byte
	// Record is nil if records are missing here.
	Record *registry.Record
}

// Next returns what a reader should get from a trail at a time in ns, in the order of
// numbers. A server that has just started reads its log again. Until current is set, a trail
// that ends before the reader's last record is assumed to reach that record later.
func (c *Cursor) Next(now int64, trail registry.Trail, current bool) []Entry {
	acts := c.acts.next(now, Acts, trail.Acts, current)
	refusals := c.refusals.next(now, Refusals, trail.Refusals, current)
	return merged(acts, refusals)
}

// At returns a cursor behind all records whose number is at most the given one.
func At(trail registry.Trail, number uint64) Cursor {
	return Cursor{markAt(trail.Acts, number), markAt(trail.Refusals, number)}
}

func markAt(chain registry.Chain, number uint64) mark {
	n := sort.Search(len(chain.Records), func(i int) bool { return chain.Records[i].Number > number })
	if n == 0 {
		return mark{}
	}
	return marked(chain.Records[n-1], 0)
}

func marked(rec *registry.Record, now int64) mark {
	return mark{rec.Number, rec.Count, rec.Term, rec.Hash, now}
}

// merged returns the entries of two chains in the order of their numbers. A gap stays
// before the record at which it was found.
func merged(a, b []Entry) []Entry {
	all := make([]Entry, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if first(a) <= first(b) {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}

// first is the number of the first record of entries.
func first(entries []Entry) uint64 {
	for _, e := range entries {
		if e.Record != nil {
			return e.Record.Number
		}
	}
	return 0
}

// next returns what the reader should get from a chain.
func (m *mark) next(now int64, name string, chain registry.Chain, current bool) (news []Entry) {
	from, gap := m.resume(chain, current)
	for i := from; i < len(chain.Records); i++ {
		rec := chain.Records[i]
		if rec.Number == m.number && i == len(chain.Records)-1 && now-m.told < againAfter {
			break // it may be repeated once more
		}
		if gap {
			news, gap = append(news, Entry{Chain: name}), false
		}
		previous := chain.Before
		if i > 0 {
			previous = chain.Records[i-1].Hash
		}
		news = append(news, Entry{name, previous, rec})
		*m = marked(rec, now)
	}
	return news
}

// resume returns the index of the first record that the reader should get, and whether
// records before it are missing.
func (m *mark) resume(chain registry.Chain, current bool) (from int, gap bool) {
	records := chain.Records
	at := sort.Search(len(records), func(i int) bool { return records[i].Number >= m.number })
	switch {
	case m.number == 0:
		return 0, chain.Before != [sha256.Size]byte{}
	case at == len(records):
		// The trail ends before the last record. If it will not get there, it is a different trail.
		if n := len(records); n > 0 && (current || records[n-1].Term > m.term) {
			return m.restart()
		}
		return at, false
	case records[at].Number == m.number && records[at].Hash == m.hash:
		return at + 1, false
	case records[at].Number == m.number && records[at].Count > m.count:
		return at, false // it was repeated
	case records[at].Number == m.number:
		return m.restart()
	case at == 0:
		return 0, chain.Before != m.hash // the last record of the reader is no longer kept
	}
	return m.restart()
}

// restart makes the reader get everything: these are different records from those it has.
func (m *mark) restart() (from int, gap bool) {
	*m = mark{}
	return 0, true
}

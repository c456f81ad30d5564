package audit

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/api/jsonform"
)

// Verifier checks lines of audit logs, of any number of servers. The lines of each server
// must be in the order in which it wrote them, one file after the other.
type Verifier struct {
	// Lines counts all lines read, and Gaps those that announce missing lines.
	Lines, Gaps int
	// Problems are the problems found, in order.
	Problems []Problem

	chains map[chainOf]*checked
	seen   map[chainOf]map[written]string // hashes
	// whole has, for each server, whether its lines begin where it began to write. Otherwise
	// nobody knows what was before the first of them.
	whole map[uint64]bool
	// opened has the chains of which a gap was announced before their first line.
	opened map[chainOf]bool
}

// Problem is an error in a line, or in the log as a whole.
type Problem struct {
	// Where is the file and the line, or empty.
	Where string
	What  string
}

func (p Problem) String() string {
	if p.Where == "" {
		return p.What
	}
	return p.Where + ": " + p.What
}

type chainOf struct {
	server uint64
	name   string
}

// written identifies a record with its count.
type written struct{ number, count uint64 }

// checked is the part of a chain that was read.
type checked struct {
	first, last uint64 // numbers
	count       uint64
	hash        string
	previous    string
	gap         bool // was announced
}

// NewVerifier returns a Verifier that has read nothing.
func NewVerifier() *Verifier {
	return &Verifier{
		chains: make(map[chainOf]*checked), seen: make(map[chainOf]map[written]string),
		whole: make(map[uint64]bool), opened: make(map[chainOf]bool),
	}
}

// Line checks the next line of a server.
func (v *Verifier) Line(where string, text []byte) {
	v.Lines++
	l, err := ParseLine(text)
	if err != nil {
		v.problem(where, "%v", err)
		return
	}
	rec, previous, err := recordOfLine(&l)
	if err != nil {
		v.problem(where, "%v", err)
		return
	}
	if hash := rec.Chained(previous); hash != rec.Hash {
		v.problem(where, "record %d of %s: its hash is %.16s..., but that of what it says is %.16s...: it was altered", l.Number, l.Chain, l.Hash, hex.EncodeToString(hash[:]))
		return
	}
	switch {
	case !bytes.Equal(bytes.TrimSuffix(text, []byte("\n")), bytes.TrimSuffix(l.Append(nil), []byte("\n"))):
		v.problem(where, "record %d of %s: its text is not what a server writes: something was changed that the hash does not contain", l.Number, l.Chain)
		return
	case l.Chain == Own && l.Kind == KindStart && rec.Server != 0 && rec.Server != l.Server:
		v.problem(where, "record %d of %s: it says server %d, and server %d wrote it", l.Number, l.Chain, l.Server, rec.Server)
		return
	}
	v.follow(where, &l)
	if l.Chain != Grants { // which is never compared
		v.keep(&l)
	}
}

// follow checks that a line continues its chain.
func (v *Verifier) follow(where string, l *jsonform.AuditRecord) {
	at := chainOf{l.Server, l.Chain}
	before := v.chains[at]
	v.begin(where, l)
	if before != nil && l.Chain == Own && l.Number == 1 {
		v.anew(l.Server)
	}
	now := checked{first: l.Number, last: l.Number, count: l.Count, hash: l.Hash, previous: l.Previous}
	if before != nil {
		now.first = min(before.first, l.Number)
		repeated := l.Number == before.last && l.Count > before.count && l.Previous == before.previous
		switch {
		case repeated || l.Previous == before.hash:
		case before.gap && l.Number <= before.last: // records of another history
			now.first, v.seen[at] = l.Number, nil
		case !before.gap:
			v.problem(where, "record %d of %s does not follow record %d: lines between them were removed, added or moved", l.Number, l.Chain, before.last)
		}
	}
	v.chains[at] = &now
	if l.Kind != KindGap {
		return
	}
	v.Gaps++
	if l.Target != nil {
		v.opened[chainOf{l.Server, l.Target.Name}] = true
		if announced := v.chains[chainOf{l.Server, l.Target.Name}]; announced != nil && l.Target.Name != Own && l.Target.Name != Grants {
			announced.gap = true
		}
	}
}

// begin checks the first line of a chain: in a log that is whole, nothing is before it.
func (v *Verifier) begin(where string, l *jsonform.AuditRecord) {
	at := chainOf{l.Server, l.Chain}
	if _, known := v.whole[l.Server]; !known {
		v.whole[l.Server] = l.Chain == Own && l.Number == 1
	}
	if v.chains[at] == nil && v.whole[l.Server] && !v.opened[at] && l.Previous != nothing {
		v.problem(where, "record %d of %s is the first of its chain here, and others were before it: lines were removed", l.Number, l.Chain)
	}
}

// nothing is the hash before the first record of a chain.
var nothing = strings.Repeat("0", 2*sha256.Size)

// Partial returns the servers whose lines do not begin where the server began to write.
func (v *Verifier) Partial() (servers []uint64) {
	for _, id := range slices.Sorted(maps.Keys(v.whole)) {
		if !v.whole[id] {
			servers = append(servers, id)
		}
	}
	return servers
}

// anew records that a server found no file when it began to write.
func (v *Verifier) anew(server uint64) {
	v.Gaps++
	for at, c := range v.chains {
		c.gap = c.gap || at.server == server
	}
}

// keep remembers what the lines of a server say about a record.
func (v *Verifier) keep(l *jsonform.AuditRecord) {
	at := chainOf{l.Server, l.Chain}
	if v.seen[at] == nil {
		v.seen[at] = make(map[written]string)
	}
	v.seen[at][written{l.Number, l.Count}] = l.Hash
}

func (v *Verifier) problem(where, format string, args ...any) {
	v.Problems = append(v.Problems, Problem{where, fmt.Sprintf(format, args...)})
}

// Compare checks the replicated records of all servers against each other and, if there
// are any, against those of the cluster in their order.
func (v *Verifier) Compare(cluster []jsonform.AuditRecord) {
	servers := slices.SortedFunc(maps.Keys(v.seen), func(a, b chainOf) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.server, b.server))
	})
	for i, at := range servers {
		if at.name == Own || at.name == Grants {
			continue
		}
		for _, before := range servers[:i] {
			if before.name == at.name {
				v.between(before, at)
			}
		}
		var of []jsonform.AuditRecord
		for _, l := range cluster {
			if l.Chain == at.name {
				of = append(of, l)
			}
		}
		v.against(at, of)
	}
	v.lacking(cluster)
}

// lacking finds chains that the cluster has, and of which a server has no line at all.
func (v *Verifier) lacking(cluster []jsonform.AuditRecord) {
	if len(cluster) > 0 && v.Lines == 0 {
		v.problem("", "the files have no lines, but the cluster has records")
	}
	for _, chain := range []string{Acts, Refusals} {
		if !slices.ContainsFunc(cluster, func(l jsonform.AuditRecord) bool { return l.Chain == chain }) {
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(v.whole)) {
			if v.whole[id] && v.chains[chainOf{id, chain}] == nil {
				v.problem("", "the lines of server %d have no record of %s, and the cluster has some", id, chain)
			}
		}
	}
}

// between checks that two servers have the same records in a chain.
func (v *Verifier) between(a, b chainOf) {
	for _, rec := range slices.SortedFunc(maps.Keys(v.seen[a]), written.compare) {
		if other, both := v.seen[b][rec]; both && other != v.seen[a][rec] {
			v.problem("", "record %d of %s differs between the lines of server %d and those of server %d", rec.number, a.name, a.server, b.server)
			return
		}
	}
}

func (w written) compare(other written) int {
	return cmp.Or(cmp.Compare(w.number, other.number), cmp.Compare(w.count, other.count))
}

// against checks a chain of a server against the cluster's chain.
func (v *Verifier) against(at chainOf, cluster []jsonform.AuditRecord) {
	if len(cluster) == 0 {
		return
	}
	read, newest := v.chains[at], cluster[len(cluster)-1].Number
	whose := fmt.Sprintf("the lines of server %d", at.server)
	for _, l := range cluster {
		hash, there := v.seen[at][written{l.Number, l.Count}]
		switch {
		case there && hash != l.Hash:
			v.problem("", "%s: record %d of %s is not the one that the cluster has", whose, l.Number, l.Chain)
		case there || l.Number < read.first || l.Number == newest && newest == read.last:
		case l.Number > read.last:
			v.problem("", "%s end with record %d of %s, and the cluster has record %d", whose, read.last, l.Chain, newest)
			return
		default:
			v.problem("", "%s lack record %d of %s", whose, l.Number, l.Chain)
		}
	}
	if newest < read.last {
		v.problem("", "%s have record %d of %s, and the cluster ends with record %d", whose, read.last, at.name, newest)
	}
}

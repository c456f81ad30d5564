package registry

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/version"
)

// Record is an act of administration, or several refusals of the same act. The entry that does
// the act also creates the record, so there is no act without a record.
type Record struct {
	// Number orders all records; it goes up by 1.
	Number uint64
	Term   uint64
	Time   int64 // wall clock of the leader, ns since 1970
	Origin Origin
	// Kind says what was done: "access", "revoke", "end-session", "drop", "member",
	// "level", "guard", "setting", or the kind in an OpNote.
	Kind string
	// Class, Name and Fence identify the lock or election, and Owner the principal whose session
	// or hold it was. Server is the server that the act was about, or 0.
	Class  Class
	Name   string
	Fence  uint64
	Owner  string
	Server uint64
	// Reason says why, or what exactly was changed.
	Reason string
	// Result is OK, or the code of the refusal. Count is how many times in a row it was refused.
	Result Code
	Count  uint64
	// Hash is the SHA-256 of the hash of the previous record in the same ring and this record's
	// encoding.
	Hash [sha256.Size]byte
}

// Bounds of the audit trail. Refusals have rings of their own, a quarter of all, so that
// refusals never displace records of acts.
const (
	mostActs, mostActBytes         = 3072, 768 << 10
	mostRefusals, mostRefusalBytes = 1024, 256 << 10
	// maxNoteKind bounds the kind of an OpNote, in bytes.
	maxNoteKind = 64
)

// trail has the newest records. It is replaced, never changed.
type trail struct {
	numbered       uint64
	acts, refusals ring
}

// ring is a list of records, the oldest first, each with a hash that covers the previous one.
type ring struct {
	before  [sha256.Size]byte // the hash of the newest record that was dropped
	records []*Record
	bytes   int
}

func (t *trail) size() int {
	if t == nil {
		return 0
	}
	return 80 + t.acts.bytes + t.refusals.bytes
}

// Records returns the records with numbers above the given one, in order. Callers must not
// change them.
func (h *head) Records(after uint64) []*Record {
	if h.trail == nil {
		return nil
	}
	all := slices.Concat(h.trail.acts.records, h.trail.refusals.records)
	all = slices.DeleteFunc(all, func(rec *Record) bool { return rec.Number <= after })
	slices.SortFunc(all, func(a, b *Record) int { return int(a.Number) - int(b.Number) })
	return all
}

// Trail is the audit trail at one time. Callers must not change it.
type Trail struct {
	// Numbered is the number of the newest record.
	Numbered uint64
	// Acts are the acts that were done, Refusals those that were refused.
	Acts, Refusals Chain
}

// Chain has the newest records of acts, or of refusals, the oldest first. Before is the hash
// of the newest record that is no longer kept, or zero.
type Chain struct {
	Before  [sha256.Size]byte
	Records []*Record
}

// Trail returns the audit trail.
func (h *head) Trail() Trail {
	if h.trail == nil {
		return Trail{}
	}
	return Trail{h.trail.numbered, h.trail.acts.chain(), h.trail.refusals.chain()}
}

func (g ring) chain() Chain { return Chain{g.before, g.records} }

// Same reports whether two trails have the same records.
func (t Trail) Same(other Trail) bool {
	return t.Numbered == other.Numbered && t.Acts.newest() == other.Acts.newest() && t.Refusals.newest() == other.Refusals.newest()
}

func (c Chain) newest() *Record {
	if len(c.Records) == 0 {
		return nil
	}
	return c.Records[len(c.Records)-1]
}

// Chained returns the hash of the record, given the hash of the previous one.
func (rec *Record) Chained(before [sha256.Size]byte) [sha256.Size]byte {
	return sha256.Sum256(rec.append(before[:]))
}

func (rec *Record) append(b []byte) []byte {
	b = wire.AppendUint(wire.AppendUint(b, rec.Number), rec.Term)
	b = rec.Origin.append(wire.AppendInt(b, rec.Time))
	b = append(wire.AppendBytes(b, rec.Kind), byte(rec.Class))
	b = wire.AppendUint(wire.AppendBytes(b, rec.Name), rec.Fence)
	b = wire.AppendUint(wire.AppendBytes(b, rec.Owner), rec.Server)
	b = append(wire.AppendBytes(b, rec.Reason), byte(rec.Result))
	return wire.AppendUint(b, rec.Count)
}

func readRecord(rd *wire.Reader) *Record {
	return &Record{
		Number: rd.Uint(), Term: rd.Uint(), Time: rd.Int(), Origin: readOrigin(rd), Kind: rd.String(), Class: Class(rd.Byte()), Name: rd.String(),
		Fence: rd.Uint(), Owner: rd.String(), Server: rd.Uint(), Reason: rd.String(), Result: Code(rd.Byte()), Count: rd.Uint(),
	}
}

func (rec *Record) bytes() int { return len(rec.append(nil)) }

// with returns the ring with one more record, whose hash is set, and without the oldest ones
// if there are too many.
func (g ring) with(rec *Record, most, mostBytes int) ring {
	rec.Hash = rec.Chained(g.newest())
	g.records = append(g.records, rec)
	g.bytes += rec.bytes()
	for len(g.records) > most || g.bytes > mostBytes {
		g.before = g.records[0].Hash
		g.bytes -= g.records[0].bytes()
		g.records = g.records[1:]
	}
	return g
}

// newest is the hash of the newest record.
func (g ring) newest() [sha256.Size]byte {
	if n := len(g.records); n > 0 {
		return g.records[n-1].Hash
	}
	return g.before
}

// has reports whether a request is recorded.
func (g ring) has(request [16]byte) bool {
	return request != [16]byte{} && slices.ContainsFunc(g.records, func(rec *Record) bool { return rec.Origin.Request == request })
}

// again counts a repetition of the newest refusal and returns the new ring. If the refusal is
// a different one, it returns false.
func (g ring) again(rec *Record) (ring, bool) {
	n := len(g.records)
	if n == 0 {
		return g, false
	}
	last := *g.records[n-1]
	if last.Origin.Actor != rec.Origin.Actor || last.Kind != rec.Kind || last.Class != rec.Class || last.Name != rec.Name || last.Owner != rec.Owner || last.Result != rec.Result {
		return g, false
	}
	last.Count++
	before := g.before
	if n > 1 {
		before = g.records[n-2].Hash
	}
	g.bytes += last.bytes() - g.records[n-1].bytes()
	last.Hash = last.Chained(before)
	g.records = append(slices.Clone(g.records[:n-1]), &last)
	return g, true
}

// put records an act that was done or refused, if the level has an audit trail. A request
// that arrives again has one record.
func (r *Registry) put(rec Record) {
	if !hasAccess(r.level) || rec.Result != OK && rec.Result != Denied && rec.Result != Unauthenticated {
		return
	}
	var t trail
	if r.trail != nil {
		t = *r.trail
	}
	if t.acts.has(rec.Origin.Request) || t.refusals.has(rec.Origin.Request) {
		return
	}
	rec.Term, rec.Time, rec.Count, rec.Reason = r.term, r.wall, 1, remembered(rec.Reason)
	refused := rec.Result != OK
	if refused {
		if ring, again := t.refusals.again(&rec); again {
			t.refusals, r.trail = ring, &t
			return
		}
	}
	t.numbered++
	rec.Number = t.numbered
	if refused {
		t.refusals = t.refusals.with(&rec, mostRefusals, mostRefusalBytes)
	} else {
		t.acts = t.acts.with(&rec, mostActs, mostActBytes)
	}
	r.trail = &t
}

// putRevoke records a revocation requested by a session. Only the homes know who holds a lock
// that an algorithm guards: the leader found that a client holds it with the fence in the
// command, and asks that client once the command has been applied.
func (r *Registry) putRevoke(s *session, c *Command, owner string, result Result) {
	if c.Op != OpRevoke || !hasAccess(r.level) {
		return
	}
	rec := Record{Origin: c.Origin(), Kind: "revoke", Class: c.Class, Name: c.Name, Fence: result.Fence, Owner: owner, Reason: c.Value, Result: result.Code}
	rec.Origin.Actor = s.owner
	if result.Code == NotFound && c.Fence != 0 && r.isGuarded(c.Class, c.Name) {
		rec.Fence, rec.Result = c.Fence, OK
	}
	if res := r.find(c.Class, c.Name); res.held() {
		rec.Owner = res.holders()[0].session.owner
	}
	r.put(rec)
}

// levels describes what an OpLevel changes.
func levels(c *Command) string {
	if c.From == c.To {
		return fmt.Sprintf("%d, stays: %v", c.To, c.Stay)
	}
	return fmt.Sprintf("from %d to %d", c.From, c.To)
}

// putNote records an act that has no entry of its own.
func (r *Registry) putNote(c *Command) Result {
	switch problem := c.Validate(); {
	case problem != "":
		return Result{Code: Invalid, Message: problem}
	case !hasAccess(r.level):
		return Result{Code: Invalid, Message: fmt.Sprintf("level %d: acts are on record from level %d on: see conclave upgrade status", r.level, version.Access)}
	}
	rec := Record{Origin: c.Origin(), Kind: c.Name, Reason: c.Value, Result: OK}
	verb, asks := noted[c.Name]
	if refusal := (Result{}); asks && r.Forbids(c.Origin(), verb, &refusal) {
		rec.Result = refusal.Code
		r.put(rec)
		return refusal
	}
	r.put(rec)
	if c.Name == BackedUp && hasSettings(r.level) {
		r.backup = r.wall
	}
	return Result{Code: OK}
}

// BackedUp is the kind of the OpNote by which a server reports that it has sent the whole of a backup.
const BackedUp = "backed-up"

// noted has the verbs for the acts that servers record by an OpNote, before they do them or
// because the rules refuse them.
var noted = map[string]access.Verb{"leader": access.Members, "member": access.Members, "level": access.Upgrade}

func (c *Command) validateNote() string {
	switch {
	case c.Name == "":
		return "kind: is empty: say what was done"
	case len(c.Name) > maxNoteKind || strings.ContainsAny(c.Name, " "):
		return fmt.Sprintf("kind: %s: must be one word of at most %d bytes", quoted(c.Name), maxNoteKind)
	}
	return firstProblem(validateText("kind", c.Name), c.validateReason(), c.Origin().validate())
}

func (c *Command) validateChange() string {
	if err := c.change().Validate(); err != nil {
		return err.Error()
	}
	return c.Origin().validate()
}

func appendTrail(b []byte, t *trail) []byte {
	if t == nil {
		t = new(trail)
	}
	b = wire.AppendUint(b, t.numbered)
	for _, g := range []*ring{&t.acts, &t.refusals} {
		b = append(b, g.before[:]...)
		b = wire.AppendUint(b, uint64(len(g.records)))
		for _, rec := range g.records {
			b = rec.append(b)
		}
	}
	return b
}

func readTrail(rd *wire.Reader) *trail {
	t := &trail{numbered: rd.Uint()}
	for _, g := range []*ring{&t.acts, &t.refusals} {
		rd.Fixed(g.before[:])
		last := uint64(0)
		each(rd, func() {
			rec := readRecord(rd)
			if rec.Number <= last || rec.Number > t.numbered || rec.Count == 0 {
				rd.Fail(fmt.Errorf("record %d comes after %d of %d, with the count %d", rec.Number, last, t.numbered, rec.Count))
				return
			}
			last, rec.Hash = rec.Number, rec.Chained(g.newest())
			g.records, g.bytes = append(g.records, rec), g.bytes+rec.bytes()
		})
	}
	if t.numbered == 0 && rd.Err() == nil {
		return nil
	}
	return t
}

// hash is what of the record is in the digest.
func (t *trail) hash() uint64 {
	if t == nil {
		return 0
	}
	acts, refusals := t.acts.newest(), t.refusals.newest()
	return sum(t.numbered, uint64(len(t.acts.records)), uint64(len(t.refusals.records)), hashText(string(acts[:])), hashText(string(refusals[:])))
}

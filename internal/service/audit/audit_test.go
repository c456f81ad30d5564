package audit

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// ring is what a registry has on record, with few places.
type ring struct {
	trail registry.Trail
	all   map[string][]*registry.Record // by chain, as they ended
}

const places = 4

func (r *ring) put(chain string, rec registry.Record) {
	c, most := &r.trail.Acts, places
	if chain == Refusals {
		c, most = &r.trail.Refusals, places-2
	}
	r.trail.Numbered++
	rec.Number, rec.Count = r.trail.Numbered, 1
	previous := c.Before
	if n := len(c.Records); n > 0 {
		previous = c.Records[n-1].Hash
	}
	rec.Hash = rec.Chained(previous)
	c.Records = append(slices.Clone(c.Records), &rec)
	if len(c.Records) > most {
		c.Before, c.Records = c.Records[0].Hash, c.Records[1:]
	}
	r.all[chain] = append(r.all[chain], &rec)
}

// again repeats the newest refusal.
func (r *ring) again() {
	c := &r.trail.Refusals
	n := len(c.Records)
	if n == 0 {
		return
	}
	rec := *c.Records[n-1]
	rec.Count++
	previous := c.Before
	if n > 1 {
		previous = c.Records[n-2].Hash
	}
	rec.Hash = rec.Chained(previous)
	c.Records = append(slices.Clone(c.Records[:n-1]), &rec)
	r.all[Refusals][len(r.all[Refusals])-1] = &rec
}

func act(t *rapid.T, term uint64) registry.Record {
	text := rapid.SampledFrom([]string{"", "a", "pay/<b>&\"", "naïve"})
	return registry.Record{
		Term: term, Time: rapid.Int64Range(1, 1<<60).Draw(t, "time"), Kind: rapid.SampledFrom([]string{"access", "revoke", "drop", "member"}).Draw(t, "kind"),
		Origin: registry.Origin{Actor: text.Draw(t, "actor"), Via: "grpc", Remote: text.Draw(t, "remote"), Request: [16]byte{rapid.Byte().Draw(t, "request")}},
		Class:  registry.Class(rapid.IntRange(0, 2).Draw(t, "class")), Name: text.Draw(t, "name"), Fence: rapid.Uint64().Draw(t, "fence"),
		Owner: text.Draw(t, "owner"), Server: rapid.Uint64Range(0, 3).Draw(t, "server"), Reason: text.Draw(t, "reason"), Result: registry.OK,
	}
}

// file is the log of a server that crashes and starts again.
type file struct {
	server  uint64
	journal *Journal
	holds   *Holds
	text    []byte
}

func (f *file) write(now int64, trail registry.Trail, current bool) {
	for _, l := range f.journal.Next(now, trail, current, f.holds) {
		f.text = l.Append(f.text)
	}
}

func (f *file) restart(t *rapid.T) {
	f.journal = NewJournal(f.server)
	torn := append(slices.Clone(f.text), `{"v":1,"chain":"acts","num`...)
	last, whole, err := Tail(bytes.NewReader(torn))
	if err != nil || whole != int64(len(f.text)) {
		t.Fatalf("%d of %d bytes are whole, %v", whole, len(f.text), err)
	}
	f.journal.Resume(last)
}

func verified(text []byte, ring ...jsonform.AuditRecord) *Verifier {
	v, n := NewVerifier(), 0
	for line := range bytes.Lines(text) {
		n++
		v.Line(fmt.Sprintf("audit.log:%d", n), line)
	}
	v.Compare(ring)
	return v
}

// linesOf returns the lines of all that a ring has.
func (r *ring) lines() (lines []jsonform.AuditRecord) {
	var c Cursor
	for _, e := range c.Next(0, r.trail, true) {
		if e.Record != nil {
			lines = append(lines, LineOf(e.Chain, e.Previous, e.Record))
		}
	}
	return lines
}

// TestJournal: a server writes, crashes, and reads its log again from an older state, at
// random times. Its file always passes the check and ends with the cluster's records.
// Records that are missing in the file are announced as a gap.
func TestJournal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &ring{all: make(map[string][]*registry.Record)}
		trails := []registry.Trail{{}}
		f := &file{server: 1, journal: NewJournal(1)}
		f.journal.Resume(nil)
		now := int64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += rapid.SampledFrom([]int64{1, 1, 1, againAfter}).Draw(t, "passed")
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1:
				r.put(Acts, act(t, 1))
			case 2:
				refused := act(t, 1)
				refused.Result = registry.Denied
				r.put(Refusals, refused)
			case 3:
				r.again()
			case 4:
				f.journal.Refused(now, Refusal{Actor: "cert:bob", Call: "Sessions", Result: registry.Denied})
			case 5: // it crashes, and applies its log again
				f.restart(t)
				for i := rapid.IntRange(0, len(trails)-1).Draw(t, "snapshot"); i < len(trails); i++ {
					f.write(now, trails[i], false)
				}
			case 6:
				f.write(now, r.trail, rapid.Bool().Draw(t, "current"))
			}
			trails = append(trails, r.trail)
		}
		now += 2 * againAfter
		f.write(now, r.trail, true)
		f.write(now+tallyFor, r.trail, true)
		v := verified(f.text, r.lines()...)
		if len(v.Problems) > 0 {
			t.Fatalf("%v in\n%s", v.Problems, f.text)
		}
		told := make(map[uint64]registry.Record)
		for line := range bytes.Lines(f.text) {
			l, _ := ParseLine(line)
			rec, _, _ := recordOfLine(&l)
			if l.Chain != Own {
				told[l.Number] = rec
			}
		}
		for chain, all := range r.all {
			for _, rec := range all {
				if got, is := told[rec.Number]; is && got.Count == rec.Count && got != *rec {
					t.Fatalf("record %d of %s is %+v in the file, was %+v", rec.Number, chain, got, *rec)
				} else if !is && v.Gaps == 0 {
					t.Fatalf("record %d of %s is not in the file, and no gap is announced:\n%s", rec.Number, chain, f.text)
				}
			}
		}
	})
}

// TestNothingIsWrittenTwice: a server that restarts and reads its log again adds nothing
// to its file.
func TestNothingIsWrittenTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &ring{all: make(map[string][]*registry.Record)}
		var trails []registry.Trail
		for range rapid.IntRange(1, places).Draw(t, "acts") {
			r.put(Acts, act(t, 1))
			trails = append(trails, r.trail)
		}
		f := &file{server: 2, journal: NewJournal(2)}
		f.journal.Resume(nil)
		f.write(1, r.trail, true)
		before := len(f.text)
		f.restart(t)
		for _, trail := range trails {
			f.write(2, trail, false)
		}
		f.write(3, r.trail, true)
		if len(f.text) != before {
			t.Fatalf("it added %s", f.text[before:])
		}
	})
}

// TestAnotherHistory: a cluster that was founded from an older backup, or that left the
// level and returned, starts a new chain of records, and the file says where it begins.
func TestAnotherHistory(t *testing.T) {
	acts := func(n int, term uint64) *ring {
		r := &ring{all: make(map[string][]*registry.Record)}
		for i := range n {
			r.put(Acts, registry.Record{Term: term, Kind: "access", Reason: fmt.Sprint(term, i), Result: registry.OK})
		}
		return r
	}
	for _, next := range []*ring{acts(2, 1), acts(3, 1), acts(1, 9), acts(4, 9)} {
		f := &file{server: 1, journal: NewJournal(1)}
		f.write(1, acts(3, 5).trail, true)
		f.write(2, next.trail, true)
		v := verified(f.text, next.lines()...)
		if len(v.Problems) > 0 || v.Gaps != 1 || v.Lines != 3+1+len(next.trail.Acts.Records) {
			t.Errorf("with %d records: %v, %d gaps, in\n%s", next.trail.Numbered, v.Problems, v.Gaps, f.text)
		}
	}
}

// TestVerify: a line that is altered, removed, doubled or moved is found.
func TestVerify(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &ring{all: make(map[string][]*registry.Record)}
		f := &file{server: 1, journal: NewJournal(1)}
		f.journal.Resume(nil)
		for range 4 {
			r.put(Acts, act(t, 1))
			f.write(1, r.trail, true)
			f.journal.Note(registry.Record{Kind: "start"})
		}
		lines := slices.Collect(strings.Lines(string(f.text)))
		i := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
		switch rapid.IntRange(0, 6).Draw(t, "how") {
		case 0: // altered
			altered := strings.Replace(lines[i], `"result":"OK"`, `"result":"DENIED"`, 1)
			lines[i] = altered
		case 1: // altered with its hash
			l, _ := ParseLine([]byte(lines[i]))
			rec, previous, _ := recordOfLine(&l)
			rec.Reason += "!"
			rec.Hash = rec.Chained(previous)
			altered := LineOf(l.Chain, previous, &rec)
			altered.Server = l.Server
			if l.Chain == Own && !strings.Contains(strings.Join(lines[i+1:], ""), `"chain":"server"`) {
				t.Skip("nobody else has the newest line of a server's own")
			}
			lines[i] = string(altered.Append(nil))
		case 2: // removed
			l, _ := ParseLine([]byte(lines[i]))
			if l.Chain == Own && (l.Number == 1 || !strings.Contains(strings.Join(lines[i+1:], ""), `"chain":"server"`)) {
				t.Skip("a log without its first or its last line can be a part of one")
			}
			lines = slices.Delete(lines, i, i+1)
		case 3: // doubled
			lines = slices.Insert(lines, i, lines[i])
			if l, _ := ParseLine([]byte(lines[i])); l.Chain == Own && l.Number == 1 {
				t.Skip("it looks like a file that was started again, which is told")
			}
		case 4: // cut
			lines[i] = lines[i][:len(lines[i])/2] + "\n"
		case 5: // with something that the hash does not contain, and that other programs may read
			more := rapid.SampledFrom([]string{`"kind":"harmless",`, `"note":"checked",`, ` `}).Draw(t, "more")
			lines[i] = strings.Replace(lines[i], `"kind"`, more+`"kind"`, 1)
			if other := strings.Replace(lines[i], `"kind":`, `"KIND":`, 2); rapid.Bool().Draw(t, "capitals") {
				lines[i] = other
			}
		case 6: // a whole chain is removed
			lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, `"chain":"acts"`) })
		}
		v := verified([]byte(strings.Join(lines, "")), r.lines()...)
		if len(v.Problems) == 0 {
			t.Fatalf("nothing is found in\n%s", strings.Join(lines, ""))
		}
	})
}

// TestPartOfALog: lines that begin in the middle of a log are good, and are reported as a part. In a
// log that begins with its first line, nothing may be missing. No lines at all are not the log of a
// cluster that has records.
func TestPartOfALog(t *testing.T) {
	r := &ring{all: make(map[string][]*registry.Record)}
	f := &file{server: 1, journal: NewJournal(1)}
	f.journal.Resume(nil)
	for range 3 {
		r.put(Acts, registry.Record{Kind: "access", Result: registry.OK})
		f.journal.Note(registry.Record{Kind: KindStart, Server: 1})
		f.write(1, r.trail, true)
	}
	lines := slices.Collect(strings.Lines(string(f.text)))
	first := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, `"chain":"acts"`) })
	for _, c := range []struct {
		what     string
		text     []string
		partial  bool
		problems int
	}{
		{"all", lines, false, 0},
		{"the end", lines[first+1:], true, 0},
		{"without the first act", slices.Delete(slices.Clone(lines), first, first+1), false, 1},
		{"nothing", nil, false, 1},
		{"as another server", strings.SplitAfter(strings.ReplaceAll(strings.TrimSpace(string(f.text)), `"server":1,"kind"`, `"server":2,"kind"`), "\n"), false, 3},
	} {
		v := verified([]byte(strings.Join(c.text, "")), r.lines()...)
		if partial := len(v.Partial()) > 0; partial != c.partial || len(v.Problems) != c.problems {
			t.Errorf("%s: a part: %v, problems %v", c.what, partial, v.Problems)
		}
	}
}

// TestFilesOfAllServers: who alters a record in one file has to alter it in all.
func TestFilesOfAllServers(t *testing.T) {
	r := &ring{all: make(map[string][]*registry.Record)}
	r.put(Acts, registry.Record{Kind: "access", Reason: "true", Result: registry.OK})
	forged := &ring{all: make(map[string][]*registry.Record)}
	forged.put(Acts, registry.Record{Kind: "access", Reason: "false", Result: registry.OK})
	one, two := &file{server: 1, journal: NewJournal(1)}, &file{server: 2, journal: NewJournal(2)}
	one.write(1, r.trail, true)
	two.write(1, r.trail, true)
	if v := verified(append(one.text, two.text...), r.lines()...); len(v.Problems) > 0 {
		t.Error(v.Problems)
	}
	two = &file{server: 2, journal: NewJournal(2)}
	two.write(1, forged.trail, true)
	if v := verified(append(one.text, two.text...)); len(v.Problems) != 1 {
		t.Error(v.Problems)
	}
}

// TestFullQueue: the number of a server's own records is bounded while its file cannot be
// written, and lost records are announced.
func TestFullQueue(t *testing.T) {
	f := &file{server: 1, journal: NewJournal(1)}
	for range MostWaiting + 5 {
		f.journal.Note(registry.Record{Kind: "start"})
	}
	f.write(1, registry.Trail{}, true)
	if v := verified(f.text); len(v.Problems) > 0 || v.Lines != MostWaiting+1 || v.Gaps != 1 || !bytes.Contains(f.text, []byte("5 records of this server found no room")) {
		t.Errorf("%v; %d lines, %d gaps", v.Problems, v.Lines, v.Gaps)
	}
}

// TestRefusalsAreCounted: repeated refusals have one line at once, and one with their
// count later. Many unknown callers share one line.
func TestRefusalsAreCounted(t *testing.T) {
	f := &file{server: 1, journal: NewJournal(1)}
	for range 100 {
		f.journal.Refused(0, Refusal{Remote: "10.0.0.9", Call: "Sessions", Result: registry.Unauthenticated})
	}
	for i := range 10 * mostTallied {
		f.journal.Refused(0, Refusal{Remote: fmt.Sprint(i), Call: "Sessions", Result: registry.Unauthenticated})
	}
	f.write(1, registry.Trail{}, true)
	if v := verified(f.text); v.Lines != mostTallied+1 || v.Gaps != 0 {
		t.Errorf("%d lines", v.Lines)
	}
	before := len(f.text)
	f.write(tallyFor, registry.Trail{}, true)
	if later := string(f.text[before:]); strings.Count(later, "\n") != 2 || !strings.Contains(later, `"count":99`) || !strings.Contains(later, fmt.Sprintf(`"count":%d`, 9*mostTallied)) {
		t.Errorf("later there are\n%s", later)
	}
}

// TestParseLine: what is no line is refused.
func TestParseLine(t *testing.T) {
	rec := registry.Record{Number: 1, Kind: "access", Result: registry.OK, Count: 1}
	rec.Hash = rec.Chained([sha256.Size]byte{})
	l := LineOf(Acts, [sha256.Size]byte{}, &rec)
	good := strings.TrimSpace(string(l.Append(nil)))
	for _, c := range [][2]string{
		{"", "not a line"}, {"{", "not a line"}, {`{"v":2}`, "v: 2"},
		{strings.Replace(good, `"result":"OK"`, `"result":"FINE"`, 1), `result: "FINE"`},
		{strings.Replace(good, `"hash":"`, `"hash":"0`, 1), "hash: "},
		{strings.Replace(good, `"previous":"`, `"previous":"x`, 1), "previous: "},
		{strings.Replace(good, `"kind":`, `"request":"12","kind":`, 1), "request: "},
		{strings.Replace(good, `"kind":`, `"target":{"class":"pony"},"kind":`, 1), `class: "pony"`},
	} {
		if v := verified([]byte(c[0] + "\n")); len(v.Problems) != 1 || !strings.Contains(v.Problems[0].What, c[1]) {
			t.Errorf("%s: %v; want %s", c[0], v.Problems, c[1])
		}
	}
	if v := verified([]byte(good)); len(v.Problems) > 0 {
		t.Error(v.Problems)
	}
}

// TestHealth: a log that fails or hangs counts as not writable until a write succeeds. A
// leader then hands over once, and again after a while.
func TestHealth(t *testing.T) {
	var h Health
	second := int64(time.Second)
	step := func(now int64, leads bool, why string, hands bool) {
		t.Helper()
		if got := h.Failing(now * second); got != why {
			t.Errorf("after %d s it fails because %q; want %q", now, got, why)
		}
		if got := h.HandsOver(now*second, leads); got != hands {
			t.Errorf("after %d s it hands over: %v", now, got)
		}
	}
	step(1, true, "", false)
	h.Begin(1 * second)
	step(2, true, "", false)
	step(3, false, "a write does not end", false)
	step(4, true, "a write does not end", true)
	step(5, true, "a write does not end", false)
	h.End("full")
	step(6, true, "full", false)
	step(64, true, "full", true)
	h.Begin(65 * second)
	step(65, true, "full", false)
	h.End("")
	step(66, true, "", false)
	h.End("full")
	step(67, true, "full", true)
}

// TestHolds: a server that crashes at any time and reads its log again writes each grant and
// each end once, in order, unless it announces a gap.
func TestHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var log []registry.Holdings
		f := &file{server: 1, journal: NewJournal(1), holds: NewHolds("pay/")}
		f.journal.Resume(nil)
		fence := uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				held := registry.Holdings{Index: uint64(10 + 3*len(log)), Term: 2}
				for range rapid.IntRange(1, 3).Draw(t, "grants") {
					fence++
					h := registry.Holding{Name: "pay/a", Fence: fence, Owner: "cert:bob", Time: int64(fence)}
					held.List = append(held.List, h)
					if rapid.Bool().Draw(t, "ends") {
						h.How = registry.Released
						held.List = append(held.List, h)
					}
				}
				log = append(log, held)
				f.holds.Held(held)
			case 2:
				f.write(1, registry.Trail{}, false)
			case 3: // it crashes between two lines
				lines := f.journal.Next(1, registry.Trail{}, false, f.holds)
				for i := range lines[:rapid.IntRange(0, len(lines)).Draw(t, "lines")] {
					f.text = lines[i].Append(f.text)
				}
				fallthrough
			case 4:
				f.restart(t)
				f.holds = NewHolds("pay/")
				for _, held := range log {
					f.holds.Held(held)
				}
			}
		}
		f.write(1, registry.Trail{}, false)
		var want, got []string
		for _, held := range log {
			for i := range held.List {
				rec := recordOf(&held, &held.List[i])
				want = append(want, fmt.Sprint(rec.Number, rec.Kind, rec.Fence))
			}
		}
		for line := range bytes.Lines(f.text) {
			if l, _ := ParseLine(line); l.Chain == Grants {
				got = append(got, fmt.Sprint(l.Number, l.Kind, l.Target.Fence))
			}
		}
		if v := verified(f.text); len(v.Problems) > 0 || v.Gaps > 0 || !slices.Equal(got, want) {
			t.Fatalf("%v\ngot  %v\nwant %v", v.Problems, got, want)
		}
	})
}

func TestHoldsThatAreLost(t *testing.T) {
	for what, lose := range map[string]func(*Holds){
		"too many": func(q *Holds) {
			for i := range uint64(MostHeld + 1) {
				q.Held(registry.Holdings{Index: 5 + i, Term: 1, List: []registry.Holding{{Name: "a", Fence: i}}})
			}
		},
		"a snapshot": func(q *Holds) { q.Skipped(9) },
		"too many at a home": func(q *Holds) {
			for i := range uint64(MostHeld + 1) {
				q.Held(registry.Holdings{List: []registry.Holding{{Name: "a", Fence: i}}})
			}
		},
	} {
		f := &file{server: 1, journal: NewJournal(1), holds: NewHolds(EveryName)}
		f.journal.Resume(nil)
		lose(f.holds)
		f.write(1, registry.Trail{}, false)
		if v := verified(f.text); v.Gaps != 1 || len(v.Problems) > 0 || !strings.Contains(string(f.text), `"name":"grants"`) {
			t.Errorf("%s: %d gaps, %v in\n%.2000s", what, v.Gaps, v.Problems, f.text)
		}
	}
}

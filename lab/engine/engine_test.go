package engine_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/engine"
	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/lab/trace/journal"
)

// page is a simulated page. Like a real page, it exchanges frames as JSON with an engine.
type page struct {
	t      testing.TB
	engine *engine.Engine
	last   uint64
	frames []frame
}

// frame is a frame as the page receives it.
type frame struct {
	id   uint64
	kind string
	head []byte
	body []byte
}

func newPage(t testing.TB) *page {
	p := &page{t: t}
	p.engine = engine.New(engine.Options{Build: "test", Host: "native", Cores: 1, Send: func(f engine.Frame) {
		head, err := f.Header()
		if err != nil {
			t.Fatal(err)
		}
		var first struct {
			ID   uint64
			Type string
		}
		if err := json.Unmarshal(head, &first); err != nil {
			t.Fatalf("%s: %v", head, err)
		}
		p.frames = append(p.frames, frame{first.ID, first.Type, head, f.Body})
	}})
	return p
}

// ask sends a request.
func (p *page) ask(r engine.Request) uint64 {
	p.last++
	r.ID = p.last
	p.engine.Receive(&r)
	return r.ID
}

// answers returns all frames of a request.
func (p *page) answers(id uint64) []frame {
	var all []frame
	for _, f := range p.frames {
		if f.id == id {
			all = append(all, f)
		}
	}
	return all
}

// lastAnswer is the last frame of the last request.
func (p *page) lastAnswer() frame {
	all := p.answers(p.last)
	return all[len(all)-1]
}

// result asks, waits for the end of all requests, and decodes the result.
func result[T any](p *page, r engine.Request) T {
	p.t.Helper()
	id := p.ask(r)
	for p.engine.Work() {
	}
	all := p.answers(id)
	if len(all) == 0 || all[len(all)-1].kind != engine.TypeResult {
		p.t.Fatalf("%s is answered with %v", r.Call, all)
	}
	return decode[T](p.t, all[len(all)-1])
}

func decode[T any](t testing.TB, f frame) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(f.head, &v); err != nil {
		t.Fatalf("%s: %v", f.head, err)
	}
	return v
}

// problem sends a request and decodes the error.
func (p *page) problem(r engine.Request) engine.Problem {
	p.t.Helper()
	id := p.ask(r)
	for p.engine.Work() {
	}
	all := p.answers(id)
	if len(all) != 1 || all[0].kind != engine.TypeError {
		p.t.Fatalf("%s is answered with %v", r.Call, all)
	}
	return decode[engine.Problem](p.t, all[0])
}

// columns is what a page keeps of a run. Chunks extend it.
type columns struct {
	records [][]byte // the bytes of each, column by column
	flights []flight
}

type flight struct {
	sender, end uint32
	to          uint16
	typ, fate   byte
}

// take processes a chunk as the protocol describes.
func (c *columns) take(t testing.TB, f frame) {
	t.Helper()
	h := decode[engine.Chunk](t, f)
	if want := 36*h.Count + 12*h.Flights.Count + 8*h.Ends; len(f.body) != want {
		t.Fatalf("%s has a body of %d bytes, it must have %d", f.head, len(f.body), want)
	}
	if h.Same > 0 || h.From == 1 {
		c.records, c.flights = c.records[:h.Same], c.flights[:h.Flights.From]
		for i := range c.flights {
			if c.flights[i].end > uint32(h.Same) {
				c.flights[i].end, c.flights[i].fate = 0, c.flights[i].fate&0x80
			}
		}
	}
	if h.From != len(c.records)+1 || h.Flights.From != len(c.flights) {
		t.Fatalf("%s follows on %d records and %d flights", f.head, len(c.records), len(c.flights))
	}
	n, b := h.Count, f.body
	for i := range n {
		var r []byte
		at := 0
		for _, size := range []int{8, 4, 4, 4, 4, 4, 2, 2, 2, 1, 1} {
			r = append(r, b[at+size*i:at+size*i+size]...)
			at += size * n
		}
		c.records = append(c.records, r)
	}
	b, n = b[36*n:], h.Flights.Count
	for i := range n {
		c.flights = append(c.flights, flight{
			binary.LittleEndian.Uint32(b[4*i:]), binary.LittleEndian.Uint32(b[4*n+4*i:]),
			binary.LittleEndian.Uint16(b[8*n+2*i:]), b[10*n+i], b[11*n+i],
		})
	}
	b, n = b[12*n:], h.Ends
	for i := range n {
		f := &c.flights[binary.LittleEndian.Uint32(b[4*i:])]
		f.end = binary.LittleEndian.Uint32(b[4*n+4*i:])
		f.fate = f.fate&0x80 | 2
		if kind := c.records[f.end-1][34]; journal.Kinds[kind] == "deliver" {
			f.fate = f.fate&0x80 | 1
		}
	}
}

// open opens a scenario and returns the run, the columns and the end.
func (p *page) open(r engine.Request, c *columns) (engine.Run, engine.End) {
	p.t.Helper()
	r.Call = engine.CallOpen
	end := result[engine.End](p, r)
	all := p.answers(p.last)
	if all[0].kind != engine.TypeRun {
		p.t.Fatalf("the first frame of open is %s", all[0].head)
	}
	for _, f := range all[1 : len(all)-1] {
		c.take(p.t, f)
	}
	if len(c.records) != end.Records {
		p.t.Fatalf("the chunks have %d records, the end says %d", len(c.records), end.Records)
	}
	return decode[engine.Run](p.t, all[0]), end
}

const saturated = "algorithm: ricart-agrawala\nn: 10\nworkload: {regime: saturated}\nlimit: {events: 30000}\nlinks: {delay: {uniform: [0.5, 1.5]}}\n"

func TestCatalogIsWhole(t *testing.T) {
	p := newPage(t)
	c := result[engine.Catalog](p, engine.Request{Call: engine.CallCatalog})
	if len(c.Algorithms) != len(algorithm.All) || len(c.Broken) != len(algorithm.Broken) || len(c.Scenarios) < 200 {
		t.Errorf("%d algorithms, %d variants, %d scenarios", len(c.Algorithms), len(c.Broken), len(c.Scenarios))
	}
	for _, s := range c.Scenarios {
		full, err := scenario.Parse(s.ID, []byte(s.Text))
		if err != nil {
			t.Fatal(err)
		}
		if cfg := full.Config(); cfg.Spec.Name != s.Algorithm || cfg.Process.N != s.N || full.About != s.About || s.Family == "" {
			t.Errorf("%s is announced as %s among %d, %q", s.ID, s.Algorithm, s.N, s.About)
		}
	}
	h := result[engine.Hello](p, engine.Request{Call: engine.CallHello})
	if h.Protocol != engine.Protocol || !slices.Contains(h.Kinds, trace.Crash) || len(h.Formats) != 6 {
		t.Errorf("hello says %+v", h)
	}
}

// The page receives the same run as a direct simulation.
func TestOpenSendsTheRun(t *testing.T) {
	p := newPage(t)
	for _, s := range result[engine.Catalog](p, engine.Request{Call: engine.CallCatalog}).Scenarios {
		if !strings.HasPrefix(s.ID, "mutex/") && !strings.HasPrefix(s.ID, "multicast/") {
			continue
		}
		run, end := p.open(engine.Request{Text: s.Text, Name: s.ID + ".yaml"}, &columns{})
		if !end.Complete || !end.Met || run.Header.Algorithm != s.Algorithm || len(run.Judged) == 0 {
			t.Errorf("%s: %+v, %+v", s.ID, run, end)
		}
		if violated := len(end.Violations) > 0; violated != (s.Violation != "" && s.Violation != "none") {
			t.Errorf("%s: violations %v, expected is %q", s.ID, end.Violations, s.Violation)
		}
		result[engine.Done](p, engine.Request{Call: engine.CallClose, Run: run.Run})
	}
}

// A run that continues after its limit equals a run without that limit.
func TestMoreGoesOn(t *testing.T) {
	p := newPage(t)
	var whole, parts columns
	_, full := p.open(engine.Request{Text: saturated}, &whole)
	run, first := p.open(engine.Request{Text: saturated, Records: 7000}, &parts)
	if first.Complete || first.Reason != "records" || first.Records < 7000 || first.Records > 7010 {
		t.Fatalf("with a limit of 7,000 records: %+v", first)
	}
	end := result[engine.End](p, engine.Request{Call: engine.CallMore, Run: run.Run})
	all := p.answers(p.last)
	for _, f := range all[:len(all)-1] {
		parts.take(t, f)
	}
	end.Run = full.Run
	if !reflect.DeepEqual(end, full) || !reflect.DeepEqual(parts, whole) {
		t.Errorf("in two parts %d records end with\n%+v, at once with\n%+v", len(parts.records), end, full)
	}
}

// If a run is opened as similar to another one, the engine sends it from the first difference on.
// The result equals a run that was sent completely.
func TestOpenLike(t *testing.T) {
	base := strings.Replace(saturated, "30000", "4000", 1)
	for name, text := range map[string]string{
		"the same":     base,
		"a late crash": base + "faults: [{at: 60, crash: 3}]\n",
		"another seed": base + "seed: 7\n",
		"more of it":   strings.Replace(base, "4000", "5000", 1),
		"less of it":   strings.Replace(base, "4000", "3000", 1),
		"a lost REQ":   base + "faults: [{at: 30, lose: REPLY, from: 2, to: 1}]\n",
	} {
		p := newPage(t)
		var c, fresh columns
		run, _ := p.open(engine.Request{Text: base}, &c)
		_, end := p.open(engine.Request{Text: text, Like: run.Run}, &c)
		chunk := decode[engine.Chunk](t, p.answers(p.last)[1])
		_, want := p.open(engine.Request{Text: text}, &fresh)
		end.Run = want.Run
		if !reflect.DeepEqual(c, fresh) || !reflect.DeepEqual(end, want) {
			t.Errorf("%s: after %d records that are the same, the run is not that which was sent whole", name, chunk.Same)
		}
		if name == "a late crash" && chunk.Same < 100 || name == "the same" && chunk.Same != want.Records {
			t.Errorf("%s: only %d of %d records are the same", name, chunk.Same, want.Records)
		}
	}
}

func TestLooksAtARun(t *testing.T) {
	p := newPage(t)
	text := p.scenario("maekawa-deadlock")
	run, end := p.open(engine.Request{Text: text, Name: "maekawa-deadlock.yaml"}, &columns{})
	if len(end.Violations) != 1 || end.Violations[0].Property != "progress" || end.Violations[0].Record > end.Records {
		t.Errorf("violations are %+v", end.Violations)
	}
	d := result[engine.Described](p, engine.Request{Call: engine.CallDescribe, Run: run.Run, From: 1, To: end.Records})
	s := result[engine.States](p, engine.Request{Call: engine.CallStates, Run: run.Run, At: end.Records})
	if len(s.Processes) != 3 || s.Processes[2].Client != "waiting" || len(s.Processes[0].Fields) == 0 {
		t.Errorf("states are %+v", s)
	}
	for _, q := range []engine.Query{
		{Rule: "R2"}, {Message: "REQ"}, {Kind: "acquire"}, {Field: d.Records[end.Records-1].Changes[0].Field}, {Text: "QUEUE"}, {Flags: int(journal.Sends)},
	} {
		found := result[engine.Found](p, engine.Request{Call: engine.CallFind, Run: run.Run, Query: &q})
		q.Last = true
		back := result[engine.Found](p, engine.Request{Call: engine.CallFind, Run: run.Run, Query: &q})
		slices.Reverse(back.Records)
		if len(found.Records) == 0 || !slices.Equal(found.Records, back.Records) || !slices.Equal(found.Records, matching(d.Records, &q)) {
			t.Errorf("%+v finds %v, backwards %v, by hand %v", q, found.Records, back.Records, matching(d.Records, &q))
		}
	}
	h := result[engine.Hash](p, engine.Request{Call: engine.CallHash, Run: run.Run, At: end.Records})
	if !strings.HasPrefix(end.Hash, h.Hash) || len(h.Hash) != 12 {
		t.Errorf("the hash is %s of %s", h.Hash, end.Hash)
	}
}

// matching finds the same records as find, with a simple loop.
func matching(records []trace.Record, q *engine.Query) []int {
	found := []int{}
	for i := range records {
		r := &records[i]
		sends := slices.ContainsFunc(r.Effects, func(e trace.Effect) bool { return e.Kind == "send" || e.Kind == "broadcast" })
		if (q.Rule == "" || slices.Contains(r.Rules, q.Rule)) && (q.Message == "" || r.Message != nil && r.Message.Name == q.Message) &&
			(q.Kind == "" || r.Kind == q.Kind) && (q.Flags == 0 || sends) &&
			(q.Field == "" || slices.ContainsFunc(r.Changes, func(c trace.Change) bool { return c.Field == q.Field })) &&
			strings.Contains(strings.ToLower(r.String()), strings.ToLower(q.Text)) {
			found = append(found, int(r.ID))
		}
	}
	return found
}

// Every export has the same contents as the output of conclave sim.
func TestExports(t *testing.T) {
	p := newPage(t)
	text := p.scenario("mutex/lamport")
	run, _ := p.open(engine.Request{Text: text, Name: "mutex/lamport.yaml"}, &columns{})
	s, err := scenario.Parse("mutex/lamport.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range trace.Formats() {
		var want bytes.Buffer
		if _, err := s.Trace(format, trace.Range{}, &want); err != nil {
			t.Fatal(err)
		}
		e := result[engine.Exported](p, engine.Request{Call: engine.CallExport, Run: run.Run, Format: format})
		if body := p.lastAnswer().body; !bytes.Equal(body, want.Bytes()) || !strings.HasPrefix(e.Name, "lamport.") {
			t.Errorf("%s as %s:\n%s\nis not\n%s", e.Name, format, body, want.Bytes())
		}
	}
	result[engine.Exported](p, engine.Request{Call: engine.CallExport, Run: run.Run, Format: "journal"})
	if _, err := journal.Decode(p.lastAnswer().body, algorithm.Find); err != nil {
		t.Error(err)
	}
}

// The engine answers other requests while it works on a long one, and one of them can cancel it.
func TestOthersGetIn(t *testing.T) {
	p := newPage(t)
	small, _ := p.open(engine.Request{Text: "algorithm: lamport\nn: 3\nworkload: {commands: [{at: 0, acquire: 1}]}\n"}, &columns{})
	long := p.ask(engine.Request{Call: engine.CallOpen, Text: strings.Replace(saturated, "30000", "1000000", 1), Records: engine.MostRecords})
	for len(p.answers(long)) < 3 {
		if !p.engine.Work() {
			t.Fatal("the long request is over already")
		}
	}
	described := p.ask(engine.Request{Call: engine.CallDescribe, Run: small.Run, From: 1, To: 2})
	if len(p.answers(described)) != 1 {
		t.Error("describe waits for the long request")
	}
	p.ask(engine.Request{Call: engine.CallCancel, Request: &long})
	all := p.answers(long)
	if last := all[len(all)-1]; last.kind != engine.TypeError || decode[engine.Problem](t, last).Code != engine.CodeCancelled {
		t.Errorf("the last frame of what was cancelled is %s", last.head)
	}
	if p.engine.Work() {
		t.Error("there is work left")
	}
	number := decode[engine.Run](t, all[0]).Run
	if got := p.problem(engine.Request{Call: engine.CallMore, Run: number}); got.Code != engine.CodeRun {
		t.Errorf("the run that was cancelled is there: %+v", got)
	}
}

func TestProblems(t *testing.T) {
	p := newPage(t)
	run, end := p.open(engine.Request{Text: "algorithm: lamport\nn: 3\nworkload: {commands: [{at: 0, acquire: 1}]}\n"}, &columns{})
	for _, c := range []struct {
		request engine.Request
		want    engine.Problem
	}{
		{engine.Request{Call: "fly"}, engine.Problem{Code: engine.CodeRequest, Message: "not in this build"}},
		{engine.Request{Call: engine.CallParse, Text: "n: 3\nalgorithm: lampord\n"}, engine.Problem{Code: engine.CodeScenario, Line: 2, Message: "lampord", Suggestion: "lamport"}},
		{engine.Request{Call: engine.CallOpen, Text: "algorithm: lamport\nn: x\n"}, engine.Problem{Code: engine.CodeScenario, Line: 2, Message: "whole number"}},
		{engine.Request{Call: engine.CallOpen, Text: "algorithm: token-ring\nn: 70000\n"}, engine.Problem{Code: engine.CodeLimit, Message: "65,534"}},
		{engine.Request{Call: engine.CallOpen, Text: saturated, Like: 99}, engine.Problem{Code: engine.CodeRun, Message: "like: 99"}},
		{engine.Request{Call: engine.CallOpen, Text: saturated, Records: 2_000_000}, engine.Problem{Code: engine.CodeLimit, Message: "records: 2000000"}},
		{engine.Request{Call: engine.CallDescribe, Run: 99, From: 1, To: 1}, engine.Problem{Code: engine.CodeRun, Message: "run: 99"}},
		{engine.Request{Call: engine.CallDescribe, Run: run.Run, From: 1, To: end.Records + 1}, engine.Problem{Code: engine.CodeRequest, Message: "within the records"}},
		{engine.Request{Call: engine.CallStates, Run: run.Run, At: end.Records + 1}, engine.Problem{Code: engine.CodeRequest, Message: "at: "}},
		{engine.Request{Call: engine.CallStates, Run: run.Run, Ranks: []int{3}}, engine.Problem{Code: engine.CodeRequest, Message: "ranks: 3"}},
		{engine.Request{Call: engine.CallFind, Run: run.Run}, engine.Problem{Code: engine.CodeRequest, Message: "query"}},
		{engine.Request{Call: engine.CallExport, Run: run.Run, Format: "gif"}, engine.Problem{Code: engine.CodeRequest, Message: "gif"}},
		{engine.Request{Call: engine.CallCancel}, engine.Problem{Code: engine.CodeRequest, Message: "missing"}},
	} {
		got := p.problem(c.request)
		if got.Code != c.want.Code || got.Line != c.want.Line || got.Suggestion != c.want.Suggestion || !strings.Contains(got.Message, c.want.Message) {
			t.Errorf("%+v fails with %+v", c.request, got)
		}
	}
}

// FuzzRequest sends arbitrary requests. None of them may cause an internal error.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"id":1,"call":"describe","run":1,"from":1,"to":3}`))
	f.Add([]byte(`{"id":1,"call":"states","run":1,"at":4,"ranks":[0,2]}`))
	f.Add([]byte(`{"id":1,"call":"find","run":1,"query":{"rule":"R1","last":true,"rank":7,"flags":3}}`))
	f.Add([]byte(`{"id":1,"call":"export","run":1,"format":"svg","from":2,"to":5}`))
	f.Add([]byte(`{"id":1,"call":"more","run":1,"records":10}`))
	f.Add([]byte(`{"id":1,"call":"hash","run":1,"at":2}`))
	f.Add([]byte(`{"id":1,"call":"cancel","request":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r engine.Request
		if json.Unmarshal(text, &r) != nil || r.Call == engine.CallOpen || r.Call == engine.CallCatalog {
			return
		}
		p := newPage(t)
		p.open(engine.Request{Text: "algorithm: lamport\nn: 3\nworkload: {commands: [{at: 0, acquire: 1}]}\n"}, &columns{})
		p.engine.Receive(&r)
		for p.engine.Work() {
		}
		for _, f := range p.frames {
			if bytes.Contains(f.head, []byte(`"code":"internal"`)) {
				t.Errorf("%s fails with %s", text, f.head)
			}
		}
	})
}

// scenario returns the text of a file of the catalog.
func (p *page) scenario(id string) string {
	p.t.Helper()
	for _, s := range result[engine.Catalog](p, engine.Request{Call: engine.CallCatalog}).Scenarios {
		if s.ID == id {
			return s.Text
		}
	}
	p.t.Fatalf("there is no scenario %s", id)
	return ""
}

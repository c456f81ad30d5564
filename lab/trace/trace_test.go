package trace_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// asker is a machine that sends a request to process 0 on Acquire, and replies if it is process 0.
type asker struct {
	asked uint64
	pools []uint64
}

func (m *asker) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Acquire:
		m.asked++
		fx.Rule(1)
		fx.Send(0, process.Message{Type: 1, Seq: m.asked})
		fx.Arm(1, 10, 20)
	case process.Deliver:
		fx.Rule(2)
		fx.Broadcast(process.Message{Type: 2, Vector: []uint64{1, 2}})
		fx.Elect(1, process.MakeTerm(3, 1))
		fx.Suspect(1)
		fx.Disarm(1)
		fx.Choose(4)
		fx.Grant(process.MakeFence(1, 2))
		fx.Deliver(ev.Message)
		fx.Deny(3)
	}
}

func (m *asker) Fields(f *process.Fields) {
	f.Seq("asked", &m.asked)
	f.Uints("pools", &m.pools)
}

var spec = &process.Spec{
	Name: "asker",
	Messages: []process.MessageSpec{
		{Name: "ASK", Fields: []process.FieldUse{{Field: process.FieldSeq, Symbol: "n"}}},
		{Name: "TELL", Class: process.Recovery, Fields: []process.FieldUse{{Field: process.FieldVector, Symbol: "LN"}}},
	},
	Timers: []string{"again"},
	Rules:  []process.RuleSpec{{Name: "R1"}, {Name: "R2"}},
	New:    func(process.ID, *process.Config) process.Machine { return &asker{} },
}

var config = &process.Config{N: 3, Labels: []process.Label{10, 20, 30},
	Options: []process.OptionValue{{Name: "mode", Value: "quick"}}}

// records returns a short run: 20 asks 10, a message is lost, 20 crashes.
func records() []trace.Record {
	d := trace.NewDescriber(spec, config)
	step := func(p process.ID, ev *process.Event) trace.Record {
		var fx process.Effects
		m := spec.New(p, config)
		before := process.View(m, config)
		fx.Begin(p, nil)
		m.Step(ev, &fx)
		return d.Step(p, ev, &fx, before, process.View(m, config))
	}
	ask := process.Message{Type: 1, From: 1, To: 0, Seq: 1}
	run := []trace.Record{
		step(1, &process.Event{Kind: process.Acquire}),
		step(0, &process.Event{Kind: process.Deliver, Message: &ask}),
		step(1, &process.Event{Kind: process.Fire, Timer: process.Timer(1).For(2)}),
		step(1, &process.Event{Kind: process.Elected, Peer: 2, Term: process.MakeTerm(4, 2)}),
		{Process: 20, Kind: trace.Drop, Message: d.Message(&process.Message{Type: 2, From: 0, To: 1, Vector: []uint64{1, 2}})},
		{Process: 20, Kind: trace.Crash, Note: "injected"},
	}
	causes := []uint64{0, 1, 1, 0, 2, 0}
	for i := range run {
		run[i].ID, run[i].Cause, run[i].Time = uint64(i+1), causes[i], int64(i)*1000
	}
	return run
}

func write(t *testing.T, run []trace.Record) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := trace.NewWriter(&file, trace.NewHeader("script", "virtual", spec, config))
	if err != nil {
		t.Fatal(err)
	}
	for i := range run {
		if err := w.Write(&run[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func readAll(file io.Reader) (h trace.Header, run []trace.Record, err error) {
	r, err := trace.NewReader(file)
	if err != nil {
		return h, nil, err
	}
	for {
		var record trace.Record
		switch err := r.Next(&record); {
		case err == io.EOF:
			return r.Header, run, nil
		case err != nil:
			return r.Header, run, err
		}
		run = append(run, record)
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	run := records()
	file := write(t, run)
	h, got, err := readAll(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(run, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(trace.NewHeader("script", "virtual", spec, config), h); d != "" {
		t.Error(d)
	}
	if !bytes.Equal(file, write(t, got)) {
		t.Error("a trace that was read is written differently")
	}
}

func TestText(t *testing.T) {
	var text strings.Builder
	w, err := trace.NewTextWriter(&text, trace.NewHeader("script", "virtual", spec, config))
	if err != nil {
		t.Fatal(err)
	}
	run := records()
	for i := range run {
		if err := w.Write(&run[i]); err != nil {
			t.Fatal(err)
		}
	}
	want := `asker, 3 processes [10 20 30], virtual time in ns, seed 0
#1 t=0 20 acquire [R1]
  20->10 ASK n=1
  arm again 10..20
  asked: 0 -> 1
#2 t=1000 10 gets ASK n=1 from 20 [R2] (because of #1)
  10->all TELL LN=[1 2]
  elect 20 round=3
  suspect 20
  disarm again
  choose 0 of 4
  10 IN fence=1.2
  deliver ASK n=1
  deny 3
#3 t=2000 20 timer again(30) runs out (because of #1)
#4 t=3000 20 elected 30 round=4
#5 t=4000 20 drop 10->20 TELL LN=[1 2] (because of #2)
#6 t=5000 20 crash -- injected
`
	if d := cmp.Diff(want, text.String()); d != "" {
		t.Error(d)
	}
}

func TestReaderRefuses(t *testing.T) {
	header := `{"conclave_trace":1,"source":"","clock":"","algorithm":"","labels":null}` + "\n"
	cases := map[string]string{
		"empty, the first line":               "",
		"line 1: not a trace":                 "hello\n",
		"has no conclave_trace":               "{}\n",
		"version 7, this program reads":       `{"conclave_trace":7,"later":true}` + "\n",
		`line 1: json: unknown field "later"`: `{"conclave_trace":1,"later":true}` + "\n",
		"line 2: unexpected EOF":              header + `{"id":1,"t":`,
		"more than one value":                 header + `{"id":1,"t":0,"p":1,"kind":"x"}}` + "\n",
		"line 3: record 1 follows record 1":   header + strings.Repeat(`{"id":1,"t":0,"p":1,"kind":"x"}`+"\n", 2),
		"record 2 has cause 2":                header + `{"id":2,"cause":2,"t":0,"p":1,"kind":"x"}` + "\n",
	}
	for want, file := range cases {
		if _, _, err := readAll(strings.NewReader(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, it should say %q", err, want)
		}
	}
}

func TestWriterRefusesDisorder(t *testing.T) {
	w, err := trace.NewWriter(io.Discard, trace.Header{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(&trace.Record{ID: 2, Cause: 3}); err == nil {
		t.Error("a cause after its effect was accepted")
	}
	if err := w.Write(&trace.Record{ID: 2}); err != nil {
		t.Errorf("a record was refused: %v", err)
	}
	if err := w.Write(&trace.Record{ID: 2}); err == nil {
		t.Error("an id was accepted twice")
	}
}

var errFull = errors.New("disk full")

// full is a writer that accepts a limited number of bytes.
type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWritersReportAFullDisk(t *testing.T) {
	w, err := trace.NewWriter(&full{}, trace.Header{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); !errors.Is(err, errFull) {
		t.Errorf("error is %v, want %v", err, errFull)
	}
	if _, err := trace.NewTextWriter(&full{}, trace.Header{}); !errors.Is(err, errFull) {
		t.Errorf("error is %v, want %v", err, errFull)
	}
	text, err := trace.NewTextWriter(&full{left: 60}, trace.Header{})
	if err != nil {
		t.Fatal(err)
	}
	if err := text.Write(&trace.Record{ID: 1, Note: strings.Repeat("x", 60)}); !errors.Is(err, errFull) {
		t.Errorf("error is %v, want %v", err, errFull)
	}
}

// FuzzReader: reading any file ends with records or an error. Records that were read can be written
// and read again.
func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"conclave_trace":1}` + "\n" + `{"id":1,"t":5,"p":3,"kind":"crash"}` + "\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		_, run, err := readAll(bytes.NewReader(file))
		if err != nil {
			return
		}
		_, again, err := readAll(bytes.NewReader(write(t, run)))
		if err != nil || len(again) != len(run) {
			t.Errorf("%d records became %d, error %v", len(run), len(again), err)
		}
	})
}

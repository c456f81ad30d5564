package trace_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

var update = flag.Bool("update", false, "write the pictures in testdata anew")

// picture returns a run in a format.
func picture(format string, h trace.Header, run []trace.Record) (string, error) {
	var b strings.Builder
	w, err := trace.NewFormatWriter(format, &b, h)
	if err != nil {
		return "", err
	}
	for i := range run {
		if err := w.Write(&run[i]); err != nil {
			return "", err
		}
	}
	err = w.Close()
	return b.String(), err
}

// A part of a run is drawn with the state at its start: process 1 is already waiting, and process 2
// is inside and then down.
func TestPartOfARun(t *testing.T) {
	h := trace.Header{Algorithm: "a", Labels: []process.Label{1, 2}}
	grant := []trace.Effect{{Kind: "grant", Fence: "7"}}
	run := []trace.Record{
		{ID: 1, Time: 1, Process: 1, Kind: "acquire"},
		{ID: 2, Time: 2, Process: 2, Kind: "acquire", Effects: grant},
		{ID: 3, Time: 3, Process: 2, Kind: "fire", Timer: "shown"},
		{ID: 4, Time: 4, Process: 2, Kind: "crash"},
		{ID: 5, Time: 5, Process: 1, Kind: "fire", Timer: "after"},
	}
	var b strings.Builder
	w, err := trace.NewSVGWriter(&b, h)
	if err != nil {
		t.Fatal(err)
	}
	draw := func(part trace.Range) string {
		b.Reset()
		w.Show(part)
		for i := range run {
			if err := w.Write(&run[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	svg := draw(trace.Range{First: 3, Last: 4})
	for text, want := range map[string]bool{
		">shown</text>": true, ">after</text>": false, `class="waiting"`: true, `class="inside"`: true, ">7</text>": true,
	} {
		if strings.Contains(svg, text) != want {
			t.Errorf("the picture has %s: %t", text, !want)
		}
	}
}

// Every trace in testdata is compared with its pictures.
func TestPictures(t *testing.T) {
	traces, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(traces) == 0 {
		t.Fatalf("%d traces in testdata, error %v", len(traces), err)
	}
	for _, file := range traces {
		for _, format := range trace.Formats() {
			t.Run(filepath.Base(file)+"/"+format, func(t *testing.T) { checkPicture(t, file, format) })
		}
	}
}

func checkPicture(t *testing.T, file, format string) {
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h, run, err := readAll(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	got, err := picture(format, h, run)
	if err != nil {
		t.Fatal(err)
	}
	golden := strings.TrimSuffix(file, "jsonl") + format
	if *update && format != "jsonl" {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs; write it anew with -update if it should:\n%s", golden, d)
	}
}

// anyLabels are the processes of generated runs.
var anyLabels = []process.Label{7, 1, 12, 30}

// anyRun generates a run with everything that a trace may contain. This includes events that no
// simulator produces, and texts with characters that are special in the formats.
func anyRun(t *rapid.T) []trace.Record {
	text := rapid.SampledFrom([]string{"ASK n=1", "TELL <a href=\"x\">&amp;", "end; #35;\n%%{", "]]>-->", "\x00\u2028é…", "q[]", strings.Repeat("LONG ", 30)})
	label := rapid.SampledFrom(anyLabels)
	kind := rapid.SampledFrom([]string{"start", "restart", "deliver", "deliver", "deliver", "fire", "acquire", "release",
		"cancel", "elected", "suspect", "decided", "crash", "drop", "duplicate", "pause", "resume", "partition", "heal"})
	effect := rapid.SampledFrom([]string{"send", "send", "broadcast", "grant", "deny", "revoke", "elect", "arm", "deliver"})
	run := make([]trace.Record, rapid.IntRange(0, 40).Draw(t, "records"))
	now := int64(0)
	message := func(from process.Label, broadcast bool) *trace.Message {
		m := &trace.Message{Name: "ASK", From: from, Text: text.Draw(t, "text")}
		if to := label.Draw(t, "to"); !broadcast {
			m.To = &to
		}
		return m
	}
	for i := range run {
		now += rapid.SampledFrom([]int64{0, 0, 1, 1000, 5_000_000, 1 << 61}).Draw(t, "pass") % max(1, (1<<62)-now)
		r := trace.Record{ID: uint64(i + 1), Time: now, Process: label.Draw(t, "process"), Kind: kind.Draw(t, "kind")}
		r.Cause = rapid.Uint64Range(0, uint64(i)).Draw(t, "cause")
		switch r.Kind {
		case "deliver", "drop", "duplicate":
			r.Message = message(label.Draw(t, "from"), false)
			if r.Cause > 0 && rapid.Bool().Draw(t, "proper") {
				r.Message.From = run[r.Cause-1].Process
			}
			r.Message.To = &r.Process
		case "fire":
			r.Timer = text.Draw(t, "timer")
		case "partition":
			r.Note = text.Draw(t, "note")
		}
		for range rapid.IntRange(0, 2).Draw(t, "effects") {
			e := trace.Effect{Kind: effect.Draw(t, "effect"), Internal: rapid.Bool().Draw(t, "internal")}
			switch e.Kind {
			case "send", "broadcast", "deliver":
				e.Message = message(r.Process, e.Kind == "broadcast")
			case "grant":
				e.Fence = "1.5"
			}
			if e.Cut = rapid.Bool().Draw(t, "cut"); e.Cut && e.Kind == "broadcast" {
				e.Reached = rapid.SliceOfNDistinct(label, 0, 3, rapid.ID).Draw(t, "reached")
			}
			r.Effects = append(r.Effects, e)
		}
		run[i] = r
	}
	return run
}

var anyHeader = trace.Header{Algorithm: "<any> & \"all\"", Clock: "virtual", Labels: anyLabels, Options: map[string]string{"b": "]]>", "a": "1"}}

// elements parses XML and counts the elements of each class outside the legend.
func elements(t interface{ Fatal(...any) }, svg string) map[string]int {
	classes := map[string]int{}
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return classes
		}
		if err != nil {
			t.Fatal(err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		classes["<"+start.Name.Local+">"]++
		for _, a := range start.Attr {
			if a.Name.Local == "class" && !strings.Contains(a.Value, "sample") {
				for _, class := range strings.Fields(a.Value) {
					classes[class]++
				}
			}
		}
	}
}

// An SVG is well-formed for every trace, shows every message once, and is always the same for the
// same trace.
func TestAnyRunHasAPicture(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := anyRun(t)
		svg, err := picture("svg", anyHeader, run)
		if err != nil {
			t.Fatal(err)
		}
		classes := elements(t, svg)
		if classes["<svg>"] != 1 || classes["<desc>"] != 1 || classes["<script>"] != 0 {
			t.Fatalf("elements are %v", classes)
		}
		arrows := 0
		for i := range run {
			if run[i].Kind == "deliver" || run[i].Kind == "drop" {
				arrows++
			}
		}
		if classes["m"]-classes["open"] != arrows {
			t.Fatalf("%d messages are drawn and %d of them did not arrive, %d came to an end", classes["m"], classes["open"], arrows)
		}
		if again, err := picture("svg", anyHeader, run); err != nil || again != svg {
			t.Fatalf("a second picture differs, error %v", err)
		}
	})
}

// Pictures do not show the effects that a crash prevented, such as entering or an election.
func TestPicturesLeaveOutWhatWasCut(t *testing.T) {
	h := trace.Header{Algorithm: "central", Labels: []process.Label{1, 2}}
	run := []trace.Record{{ID: 1, Process: 1, Kind: "start", Effects: []trace.Effect{
		{Kind: "grant", Fence: "1.5", Cut: true}, {Kind: "elect", Peer: &h.Labels[1], Cut: true},
		{Kind: "send", Message: &trace.Message{Name: "ASK", From: 1, To: &h.Labels[1], Text: "ASK"}, Cut: true},
	}}}
	for _, format := range []string{"mermaid", "svg"} {
		drawn, err := picture(format, h, run)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"1.5", "elect", "ASK"} {
			if strings.Contains(drawn, word) {
				t.Errorf("%s shows %q, which was cut off:\n%s", format, word, drawn)
			}
		}
	}
}

func TestFormatsRefuse(t *testing.T) {
	wide := make([]process.Label, 33)
	long := make([]trace.Record, 3000)
	for i := range long {
		long[i] = trace.Record{ID: uint64(i + 1), Process: 1, Kind: "acquire"}
	}
	one := trace.Header{Labels: []process.Label{1}}
	silent := make([]trace.Record, 3000)
	for i := range silent {
		ask := trace.Effect{Kind: "send", Message: &trace.Message{Name: "ASK", From: 1, To: &one.Labels[0]}}
		silent[i] = trace.Record{ID: uint64(i + 1), Process: 1, Kind: "start", Effects: []trace.Effect{ask, ask}}
	}
	stranger := process.Label(9)
	cases := map[string]struct {
		format string
		header trace.Header
		run    []trace.Record
	}{
		`unknown format "pdf": must be one of text, jsonl, shiviz, mermaid, svg`:                         {"pdf", one, nil},
		"processes: 33: a picture shows 1 to 32; use fewer":                                              {"svg", trace.Header{Labels: wide}, nil},
		"processes: 0: a picture shows 1 to 32":                                                          {"svg", trace.Header{}, nil},
		"record 1001: a picture shows 1000 records; draw records 1-1000 (--records), and then 1001-2000": {"svg", one, long},
		"record 1916: Mermaid draws at most 50000 bytes; end the run sooner":                             {"mermaid", one, long},
		"record 1667: Mermaid draws at most 50000 bytes":                                                 {"mermaid", one, silent},
		"record 1: process 2: must be one of the header":                                                 {"shiviz", one, []trace.Record{{ID: 1, Process: 2}}},
		"record 3: process 9": {"mermaid", one,
			[]trace.Record{{ID: 3, Process: 1, Message: &trace.Message{From: 1, To: &stranger}}}},
		"record 4: process 9": {"svg", one, []trace.Record{{ID: 4, Process: 1, Effects: []trace.Effect{
			{Kind: "broadcast", Message: &trace.Message{From: 1}, Cut: true, Reached: []process.Label{9}}}}}},
		"record 2 has cause 2, a cause comes first": {"svg", one, []trace.Record{{ID: 2, Cause: 2, Process: 1}}},
	}
	for want, c := range cases {
		if _, err := picture(c.format, c.header, c.run); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, it should say %q", err, want)
		}
	}
}

// Times may have any distance from each other, and may decrease.
func TestPictureOfAnyTimes(t *testing.T) {
	var run []trace.Record
	for i, time := range []int64{math.MinInt64, 0, math.MaxInt64, 5, -5, 6} {
		run = append(run, trace.Record{ID: uint64(i + 1), Time: time, Process: 7, Kind: "fire", Timer: "tick"})
	}
	svg, err := picture("svg", anyHeader, run)
	if err != nil {
		t.Fatal(err)
	}
	if classes := elements(t, svg); classes["timer"] != len(run) || strings.Contains(svg, `height="-`) {
		t.Errorf("the picture is %v", classes)
	}
}

func TestPicturesReportAFullDisk(t *testing.T) {
	for _, format := range trace.Formats() {
		w, err := trace.NewFormatWriter(format, &full{}, anyHeader)
		if err == nil {
			err = w.Close()
		}
		if !errors.Is(err, errFull) {
			t.Errorf("%s: error is %v, want %v", format, err, errFull)
		}
	}
}

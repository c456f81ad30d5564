//go:build !js

package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/engine"
	"github.com/conclave-io/conclave/process"
)

// host answers requests, one after another, with all frames of the answer.
type host func(r *engine.Request) []answer

// answer is a frame.
type answer struct {
	Head map[string]any
	Body []byte
}

// native is an engine of this process.
func native(t testing.TB) host {
	var frames []answer
	e := engine.New(engine.Options{Build: "x", Host: "native", Send: func(f engine.Frame) {
		head, err := f.Header()
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, answer{decodeHead(t, head), append([]byte{}, f.Body...)})
	}})
	return func(r *engine.Request) []answer {
		frames = nil
		e.Receive(r)
		for e.Work() {
		}
		return frames
	}
}

func decodeHead(t testing.TB, head []byte) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(head, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// node is the engine that browsers get, under Node.
func node(t testing.TB) host {
	t.Helper()
	built := filepath.Join(t.TempDir(), "engine.wasm")
	build := exec.Command("go", "build", "-trimpath", "-o", built, ".")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	loader := filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js")
	cmd := exec.Command("node", "testdata/worker.mjs", loader, built)
	cmd.Stderr = os.Stderr
	to, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		to.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	frames := bufio.NewReaderSize(from, 1<<20)
	return func(r *engine.Request) []answer {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.Write(append(text, '\n')); err != nil {
			t.Fatal(err)
		}
		var all []answer
		for {
			a := readAnswer(t, frames)
			all = append(all, a)
			if kind := a.Head["type"]; kind == engine.TypeResult || kind == engine.TypeError {
				return all
			}
		}
	}
}

func readAnswer(t testing.TB, from io.Reader) answer {
	t.Helper()
	var lengths [8]byte
	if _, err := io.ReadFull(from, lengths[:]); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, binary.LittleEndian.Uint32(lengths[:]))
	body := make([]byte, binary.LittleEndian.Uint32(lengths[4:]))
	for _, part := range [][]byte{head, body} {
		if _, err := io.ReadFull(from, part); err != nil {
			t.Fatal(err)
		}
	}
	return answer{decodeHead(t, head), body}
}

// A browser gets the runs that the command line gets: the same journals, descriptions and
// states, in every scenario and in 20 random runs of every algorithm.
func TestBrowserAndNativeAgree(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("there is no node")
	}
	if os.Getenv("PARITY") == "" {
		t.Skip("takes half a minute: set PARITY=1")
	}
	here, there := native(t), node(t)
	var c engine.Catalog
	remarshal(t, here(&engine.Request{ID: 1, Call: engine.CallCatalog})[0].Head, &c)
	var texts []string
	for _, s := range c.Scenarios {
		texts = append(texts, s.Text)
	}
	texts = append(texts, randomRuns(t, c.Scenarios)...)
	number := 0 // of the runs that began
	for _, text := range texts {
		open := &engine.Request{ID: 1, Call: engine.CallOpen, Text: text}
		a, b := here(open), there(open)
		end, other := a[len(a)-1].Head, b[len(b)-1].Head
		if !reflect.DeepEqual(end, other) || !reflect.DeepEqual(a[0].Head, b[0].Head) || end["type"] != engine.TypeResult {
			t.Fatalf("the run of\n%s\nends natively with\n%v\nand in wasm with\n%v", text, end, other)
		}
		number++
		records := int(end["records"].(float64))
		for _, look := range []engine.Request{
			{Call: engine.CallDescribe, From: max(1, records-20), To: records},
			{Call: engine.CallStates, At: records / 2},
			{Call: engine.CallFind, Query: &engine.Query{Text: "1"}, To: min(records, 20)},
			{Call: engine.CallClose},
		} {
			look.ID, look.Run = 2, number
			if a, b := here(&look), there(&look); !reflect.DeepEqual(a, b) {
				t.Fatalf("%s of\n%s\nis natively\n%v\nand in wasm\n%v", look.Call, text, a, b)
			}
		}
	}
	t.Logf("%d runs are the same with %s natively and under Node", len(texts), runtime.Version())
}

// randomRuns returns 20 runs of each algorithm that differ in their seeds: locks under load, and the
// others in the first scenario of each, with delays by chance.
func randomRuns(t *testing.T, scenarios []engine.Scenario) []string {
	t.Helper()
	base := make(map[string]string)
	for _, s := range scenarios {
		name := valueOf(s.Text, "algorithm")
		if _, known := base[name]; !known {
			base[name] = without(s.Text, "about", "seed", "links", "expect", "schedule")
		}
	}
	var texts []string
	for _, spec := range algorithm.All {
		text := fmt.Sprintf("algorithm: %s\nn: 5\nworkload: {regime: saturated}\nlimit: {events: 300}\n", spec.Name)
		if spec.Family != process.Mutex {
			if text = base[spec.Name]; text == "" {
				t.Errorf("%s has no scenario", spec.Name)
				continue
			}
		}
		for seed := range 20 {
			texts = append(texts, fmt.Sprintf("%s\nseed: %d\nlinks: {delay: {uniform: [0.2, 1]}}\n", text, seed))
		}
	}
	return texts
}

// valueOf returns the value of a field at the top of a scenario.
func valueOf(text, field string) string {
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, field+":"); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// without returns a scenario without some of the fields at its top.
func without(text string, fields ...string) string {
	var kept strings.Builder
	drop := false
	for line := range strings.Lines(text) {
		if line[0] != ' ' && line[0] != '-' && line[0] != '\n' {
			name, _, _ := strings.Cut(line, ":")
			drop = slices.Contains(fields, name)
		}
		if !drop {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

func remarshal(t *testing.T, head map[string]any, to any) {
	t.Helper()
	text, err := json.Marshal(head)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkHosts measures both hosts: how fast runs are made, and how long it takes to
// look at them.
func BenchmarkHosts(b *testing.B) {
	if _, err := exec.LookPath("node"); err != nil {
		b.Skip("there is no node")
	}
	for name, start := range map[string]func(testing.TB) host{"native": native, "wasm": node} {
		h := start(b)
		number := 0
		for _, n := range []int{10, 100} {
			open := &engine.Request{ID: 1, Call: engine.CallOpen, Text: fmt.Sprintf(
				"algorithm: ricart-agrawala\nn: %d\nworkload: {regime: saturated}\nlimit: {events: 100000}\n", n)}
			records := 0.0
			b.Run(fmt.Sprintf("%s/open/n=%d", name, n), func(b *testing.B) {
				for b.Loop() {
					all := h(open)
					records, number = all[len(all)-1].Head["records"].(float64), number+1
				}
				b.ReportMetric(records*float64(b.N)/b.Elapsed().Seconds(), "records/s")
			})
			for look, r := range map[string]engine.Request{
				"describe-1":   {Call: engine.CallDescribe, From: int(records) / 2, To: int(records) / 2},
				"describe-100": {Call: engine.CallDescribe, From: int(records) / 2, To: int(records)/2 + 99},
				"states":       {Call: engine.CallStates, At: int(records) / 2},
			} {
				r.ID, r.Run = 2, number
				b.Run(fmt.Sprintf("%s/%s/n=%d", name, look, n), func(b *testing.B) {
					for b.Loop() {
						h(&r)
					}
				})
			}
		}
	}
}

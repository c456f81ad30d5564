package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	load "github.com/conclave-io/conclave/internal/cli/bench"
)

func TestSpread(t *testing.T) {
	if s := spreadOf([]float64{5, 1, 300}); *s != (spread{5, 1, 300}) || s.String() != "5.00 (1.00 to 300)" {
		t.Error(s)
	}
	if s := spreadOf([]float64{2, 1}); s.Median != 1.5 {
		t.Error(s)
	}
	if s := spreadOf(nil); s.String() != "-" {
		t.Error(s)
	}
}

// TestRatioIsTakenWithinARound halves the speed of the machine from one round to the next. The
// ratio must not change.
func TestRatioIsTakenWithinARound(t *testing.T) {
	var samples []sample
	for round, pace := range []float64{1, 2, 4} {
		for service, rate := range map[string]float64{"conclave": 300, "etcd": 100} {
			samples = append(samples, sample{loadCase: cases[0], Service: service, Round: round + 1, Rate: rate / pace})
		}
	}
	text := tables(samples, []string{"conclave", "etcd", "zookeeper"}, []string{"zookeeper: not installed"})
	for _, line := range []string{
		"| conclave | 150 (75.0 to 300) | - | - | - | - | - | 0 |",
		"| etcd | 50.0 (25.0 to 100) | 3.00 (3.00 to 3.00) | - | - | - | - | 0 |",
		"Left out: zookeeper: not installed.",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("there is no line %q in\n%s", line, text)
		}
	}
}

func TestSampleKeys(t *testing.T) {
	text, err := json.Marshal(sample{loadCase: cases[0]})
	want := `{"workload":"uncontended","clients":1,"connections":1,"service":"","round":0,"ops_per_s":0,"acquire_ms_p50":null,"acquire_ms_p99":null,"handoff_ms_p50":null,"max_min_entries":null,"failed":0,"fdatasync_ms_p50":0}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}

func TestProfileIsAddedUp(t *testing.T) {
	functions := flat(`File: conclave
Type: cpu
      flat  flat%   sum%        cum   cum%
     300ms 30.00% 30.00%      300ms 30.00%  internal/runtime/syscall/linux.Syscall6
     200ms 20.00% 50.00%      500ms 50.00%  runtime.mallocgc
     100ms 10.00% 60.00%      100ms 10.00%  runtime.selectgo (inline)
     100ms 10.00% 70.00%      100ms 10.00%  github.com/conclave-io/conclave/internal/service/registry.(*Registry).Apply
     100ms 10.00% 80.00%      100ms 10.00%  strings.Index
         0     0% 80.00%     1000ms   100%  main.main
`)
	if len(functions) != 5 || functions[2].What != "runtime.selectgo (inline)" {
		t.Fatalf("%v", functions)
	}
	kinds := byKind(functions)
	for i, want := range []float64{30, 20} {
		if kinds[i].Percent != want {
			t.Errorf("%v", kinds)
		}
	}
	sums := make(map[string]float64)
	for _, k := range kinds {
		sums[k.What] = k.Percent
	}
	if sums["goroutines: scheduling, channels, timers, locks"] != 10 || sums["the registry and the core"] != 10 || sums[rest] != 10 {
		t.Errorf("%v", sums)
	}
}

// TestRegressions parses output of benchstat for two invented result files.
func TestRegressions(t *testing.T) {
	values := `pkg: example.org/a
,base,,head,,,
,sec/op,CI,sec/op,CI,vs base,P
Slower-2,1.0000000000000001e-05,5%,1.25e-05,4%,+25.00%,p=0.002 n=6
Same-2,1e-05,5%,1.25e-05,4%,~,p=0.200 n=6
Little-2,1e-05,5%,1.1e-05,4%,+10.00%,p=0.002 n=6
Faster-2,1e-05,5%,5e-06,4%,-50.00%,p=0.002 n=6
geomean,1e-05,,1.25e-05,,+25.00%,

,base,,head,,,
,ops/s,CI,ops/s,CI,vs base,P
Load/a-2,1000,5%,750,4%,-25.00%,p=0.002 n=6
Load/b-2,1000,5%,1500,4%,+50.00%,p=0.002 n=6
`
	got := regressed([]byte(values))
	want := []string{"Slower-2: 1e-05 to 1.25e-05 sec/op (p=0.002 n=6)", "Load/a-2: 1000 to 750 ops/s (p=0.002 n=6)"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q; want %q", got, want)
	}
}

func TestBenchmarkLine(t *testing.T) {
	got, err := benchmarkLine(loadCase{load.Contended, 64, 1}, []byte(`{"ops_per_s":900.5,"acquire_ms_p50":2,"acquire_ms_p99":null,"handoff_ms_p50":0}`))
	if want := "pkg: loads\nBenchmarkLoad/contended/clients=64/connections=1 1 900.5 ops/s 2 acquire-p50-ms\n"; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if _, err := benchmarkLine(loadCase{}, []byte("conclave: no")); err == nil {
		t.Error("what is no JSON is taken for a report")
	}
}

func TestBadInput(t *testing.T) {
	for words, args := range map[string][]string{
		"measurement: missing; must be one of":      {},
		`"sloth": unknown measurement`:              {"sloth"},
		"-rounds: 0: must be between 1 and 100":     {"services", "-rounds", "0"},
		"-seconds: 3600: must be":                   {"services", "-seconds", "3600"},
		"-connections: 20: must be between 1 and 5": {"idle", "-sessions", "5", "-connections", "20"},
		`-services: "consul"`:                       {"services", "-services", "consul"},
		`"now": unexpected argument`:                {"idle", "now"},
		"-base: missing; set it to the commit":      {"compare"},
		"-rounds: 3: must be at least 4":            {"compare", "-base", "HEAD", "-rounds", "3"},
		"not a commit in this repository":           {"compare", "-base", "0000000000"},
	} {
		if err := run(context.Background(), args); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q gives the error %v; want %q in it", args, err, words)
		}
	}
}

// TestVerdict runs benchstat itself, to check that its output has the format that the parser
// expects.
func TestVerdict(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, ns, rate float64) string {
		text := "Unit ops/s better=higher\npkg: a\n"
		for i := range 6 {
			text += fmt.Sprintf("BenchmarkX 1 %g ns/op\npkg: loads\nBenchmarkLoad/contended/clients=64/connections=1 1 %g ops/s\npkg: a\n", ns+float64(i), rate+float64(i))
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	base := write("base", 1000, 1000)
	if err := verdict(t.Context(), base, write("same", 1100, 900)); err != nil {
		t.Error(err)
	}
	err := verdict(t.Context(), base, write("worse", 1300, 700))
	if err == nil || !strings.HasPrefix(err.Error(), "2 figures are more than 20 % worse") || !strings.Contains(err.Error(), "Load/contended") {
		t.Error(err)
	}
}

func TestReadersTable(t *testing.T) {
	spells := []spell{
		{Beside: besideNothing, Seconds: 10, CPU: 9, latencies: newLatencies()},
		{Beside: besideReaders, Seconds: 5, CPU: 10, latencies: newLatencies(), Snapshots: 6, Backup: 4e6, Scanned: 20},
		{Beside: besidePrograms, Seconds: 5, CPU: 9.5, latencies: newLatencies()},
	}
	for i := range spells {
		for n := int64(1); n <= 10_000; n++ {
			_ = spells[i].latencies.acquires.RecordValue(n * int64(i+1) * 1e3)
		}
		spells[i].quantify()
	}
	m := readersReport{Rounds: 2, Spells: spells, Terms: [2]int{2, 3}, Alone: 4.5}
	text := m.table()
	for _, words := range []string{
		"| acquire, p99.9 | 9.99 | 20.0 | 30.0 |",
		"| renew, p99.9 | 0.000 | 0.000 | 0.000 |",
		"| processors in use | 0.900 | 2.00 | 1.90 |",
		"a scan of 10 locks (0.0 s), a backup of 2 MB (0.0 s) and 3 snapshots each, which cost 4.5 s of processor time without other load.",
		"The term was 2 before and 3 after.",
	} {
		if !strings.Contains(text, words) {
			t.Errorf("there is no %q in\n%s", words, text)
		}
	}
}

// TestComputeUsesWhatItIsTold runs programs that must use the given processor time.
func TestComputeUsesWhatItIsTold(t *testing.T) {
	used, err := compute(t.Context(), 2, cost{cpu: 0.2, seconds: 1})
	if err != nil || used < 0.2 || used > 1 {
		t.Errorf("used %.2f s of processors, want 0.2 s or a little more (%v)", used, err)
	}
	if used, err = compute(t.Context(), 1, cost{cpu: 1e9, seconds: 0.1}); err != nil || used > 1 {
		t.Errorf("used %.2f s of processors in a tenth of a second (%v)", used, err)
	}
}

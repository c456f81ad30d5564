package longrun

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReportIsWhatThePartsSay: nobody edits the report.
func TestReportIsWhatThePartsSay(t *testing.T) {
	want, err := Report("../../../docs/long-runs")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../docs/long-runs.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("docs/long-runs.md is not what the files in docs/long-runs say, which is\n%s", want)
	}
}

func TestNotesBecomeATable(t *testing.T) {
	folder := t.TempDir()
	notes := filepath.Join(folder, "notes")
	t.Setenv(Variable, notes)
	for _, n := range []float64{5, 2} {
		for _, subject := range []string{"ring", "central"} {
			if err := Note(fmt.Sprintf("%s, N = %v", subject, n), Figure{"events", 1000 * n}, Figure{"entries", n}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := Note("tree", Figure{"entries", 1}, Figure{"edges", 0.5}); err != nil {
		t.Fatal(err)
	}
	header := Header{Title: "Some runs", Command: "go test", Commit: "abc", Date: "2026-01-02", Machine: "a machine", Seconds: 1234.5, Total: true}
	if err := Write(folder, "some", header, notes); err != nil {
		t.Fatal(err)
	}
	if err := Write(folder, "without", Header{Title: "No notes"}, filepath.Join(folder, "none")); err != nil {
		t.Fatal(err)
	}
	report, err := Report(folder)
	if err != nil {
		t.Fatal(err)
	}
	want := intro + `
## Some runs

    go test

Passed on 2026-01-02, at abc, in 1,234 s, on a machine.

|  | events | entries | edges |
|---|---:|---:|---:|
| central, N = 2 | 2,000 | 2 |  |
| central, N = 5 | 5,000 | 5 |  |
| ring, N = 2 | 2,000 | 2 |  |
| ring, N = 5 | 5,000 | 5 |  |
| tree |  | 1 | 0.500 |
| **all** | 14,000 | 15 | 0.500 |

## No notes
`
	if !strings.HasPrefix(string(report), want) {
		t.Errorf("the report is\n%s\nwant\n%s", report, want)
	}
}

func TestBenchmarksAreRead(t *testing.T) {
	subject, figures, ok := Benchmark("BenchmarkPending/pending=1000-2   1000000   150.5 ns/op   0 allocs/op\n")
	if want := []Figure{{"ns/op", 150.5}, {"allocs/op", 0}}; !ok || subject != "Pending/pending=1000" || !slices.Equal(figures, want) {
		t.Errorf("read %q, %v, %v", subject, figures, ok)
	}
	if subject, _, _ := Benchmark("BenchmarkSaturated/token-ring 100 5 ns/op"); subject != "Saturated/token-ring" {
		t.Errorf("on one processor the benchmark is called %q", subject)
	}
	for _, line := range []string{"", "PASS", "goos: linux", "BenchmarkOdd", "Benchmarks are a good thing"} {
		if subject, _, ok := Benchmark(line); ok {
			t.Errorf("%q is taken for the benchmark %q", line, subject)
		}
	}
}

func TestNoNotesUnlessAsked(t *testing.T) {
	t.Setenv(Variable, "")
	if Asked() {
		t.Error("notes are wanted, and nobody asked")
	}
	if err := Note("ring", Figure{"N", 1}); err != nil {
		t.Error(err)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 7: "7", 0.1234: "0.123", 1.2345: "1.23", 12.345: "12.3", 123.45: "123", 1234567: "1,234,567", 999.9: "1,000"} {
		if got := Number(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
}

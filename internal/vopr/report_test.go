package vopr

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/conclave-io/conclave/internal/longrun"
)

var update = flag.Bool("update", false, "write the last long run into docs/verification.md")

const (
	figuresOf = "../../docs/long-runs/vopr.jsonl"
	reportIn  = "../../docs/verification.md"
)

// TestReport requires docs/verification.md to say what the last long run was.
func TestReport(t *testing.T) {
	text, err := os.ReadFile(reportIn)
	if err != nil {
		t.Fatal(err)
	}
	const begins, ends = "<!-- generated: vopr -->\n", "<!-- end -->"
	head, rest, found := bytes.Cut(text, []byte(begins))
	block, tail, ended := bytes.Cut(rest, []byte(ends))
	if !found || !ended {
		t.Fatalf("%s has no block between %q and %q", reportIn, begins, ends)
	}
	want := reported(t)
	switch {
	case bytes.Equal(block, want):
	case *update:
		whole := bytes.Join([][]byte{head, []byte(begins), want, []byte(ends), tail}, nil)
		if err := os.WriteFile(reportIn, whole, 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s tells of another run than %s: go test ./internal/vopr -run TestReport -update", reportIn, figuresOf)
	}
}

// reported writes the figures of the last long run as a table.
func reported(t *testing.T) []byte {
	file, err := os.Open(figuresOf)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var ran longrun.Header
	lines := json.NewDecoder(file)
	if err := lines.Decode(&ran); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "Ran on %s, at %s, in %s s, on %s.\n", ran.Date, ran.Commit, longrun.Number(ran.Seconds), ran.Machine)
	for lines.More() {
		var note struct {
			Subject string
			Figures []longrun.Figure
		}
		if err := lines.Decode(&note); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "\n| %s | |\n|---|---:|\n", note.Subject)
		for _, f := range note.Figures {
			fmt.Fprintf(&out, "| %s | %s |\n", f.Name, longrun.Number(f.Value))
		}
	}
	return out.Bytes()
}

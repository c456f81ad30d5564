package vopr

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/conclave-io/conclave/internal/gen/splice"
	"github.com/conclave-io/conclave/internal/test/longrun"
)

var update = flag.Bool("update", false, "write the last long run into docs/verification.md")

const (
	figuresOf = "../../../docs/long-runs/vopr.jsonl"
	reportIn  = "../../../docs/verification.md"
)

// TestReport checks that docs/verification.md has the figures of the last long run.
func TestReport(t *testing.T) {
	same, err := splice.File(reportIn, "vopr", string(reported(t)), *update)
	if err != nil {
		t.Fatal(err)
	}
	if !same {
		t.Errorf("%s tells of another run than %s: go test ./internal/test/vopr -run TestReport -update", reportIn, figuresOf)
	}
}

// reported formats the figures of the last long run as a table.
func reported(t *testing.T) []byte {
	text, err := os.ReadFile(figuresOf)
	if err != nil {
		t.Fatal(err)
	}
	ran, notes, err := longrun.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "Ran on %s, at %s, in %s s, on %s.\n", ran.Date, ran.Commit, longrun.Number(ran.Seconds), ran.Machine)
	for _, n := range notes {
		fmt.Fprintf(&out, "\n| %s | |\n|---|---:|\n", n.Name)
		for _, f := range n.Figures {
			fmt.Fprintf(&out, "| %s | %s |\n", f.Name, longrun.Number(f.Value))
		}
	}
	return out.Bytes()
}

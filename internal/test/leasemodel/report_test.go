package leasemodel

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/gen/splice"
	"github.com/conclave-io/conclave/internal/test/longrun"
)

var update = flag.Bool("update", false, "write the last long run and the variants into docs/verification.md")

const (
	figuresOf = "../../../docs/long-runs/lease.jsonl"
	reportIn  = "../../../docs/verification.md"
)

// TestReport requires docs/verification.md to say what the last long run was, and what
// the variants are.
func TestReport(t *testing.T) {
	for block, content := range map[string]string{"lease": searched(t), "lease variants": variants()} {
		same, err := splice.File(reportIn, block, content, *update)
		if err != nil {
			t.Fatal(err)
		}
		if same {
			continue
		}
		t.Errorf("%s tells of another run than %s, or of other variants: go test ./internal/test/leasemodel -run TestReport -update", reportIn, figuresOf)
	}
}

// searched writes the figures of the last long run as a table.
func searched(t *testing.T) string {
	text, err := os.ReadFile(figuresOf)
	if err != nil {
		t.Fatal(err)
	}
	ran, notes, err := longrun.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "Ran on %s, at %s, in %s s, on %s.\n\n", ran.Date, ran.Commit, longrun.Number(ran.Seconds), ran.Machine)
	out.WriteString("| bounds | states | transitions | depth | GiB | s |\n|---|---:|---:|---:|---:|---:|\n")
	for _, n := range notes {
		out.WriteString("| " + n.Name)
		for _, f := range n.Figures {
			out.WriteString(" | " + longrun.Number(f.Value))
		}
		out.WriteString(" |\n")
	}
	return out.String()
}

// variants writes the flaws as a table.
func variants() string {
	var out strings.Builder
	out.WriteString("| variant | options | verdict | states | steps |\n|---|---|---|---:|---:|\n")
	for _, v := range Variants[1:] {
		verdict, steps := v.Breaks, fmt.Sprint(v.Steps)
		if v.Breaks == "" {
			verdict, steps = "proved: no harm by itself in these bounds", ""
		}
		fmt.Fprintf(&out, "| %s: %s | %s | %s | %s | %s |\n", v.Name, v.Mistake, text(v.Options), verdict, longrun.Number(float64(v.States)), steps)
	}
	return out.String()
}

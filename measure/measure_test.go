package measure

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/process"
)

// TestCostsAreWhatTheSpecsSay measures every algorithm for mutual exclusion at
// every size that costs little, and fails when one leaves its formula.
func TestCostsAreWhatTheSpecsSay(t *testing.T) {
	var sizes []int
	for n := 2; n <= 50; n++ {
		sizes = append(sizes, n)
	}
	if !testing.Short() {
		sizes = append(sizes, 100)
	}
	for _, spec := range Mutex(algorithm.All) {
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			for _, n := range sizes {
				check(t, spec, n)
			}
		})
	}
}

func check(t *testing.T, spec *process.Spec, n int) {
	t.Helper()
	rows, err := Algorithm(spec, n)
	if err != nil {
		t.Fatal(err)
	}
	stated := false
	for i := range rows {
		if !rows[i].Within() {
			t.Errorf("N = %d, %s, %s: measured %v, theory %s = %s", n, rows[i].Regime, rows[i].Metric, rows[i].Measured, rows[i].formula(), rows[i].expected())
		}
		stated = stated || rows[i].Metric == MessagesPerEntry && (rows[i].Theory != nil || rows[i].Bounds != nil)
	}
	if !stated {
		t.Errorf("N = %d: the Spec says nothing of messages per entry that could be checked", n)
	}
}

func TestRowOutsideItsTheoryIsSeen(t *testing.T) {
	theory := 3.0
	for _, c := range []struct {
		row  Row
		want bool
	}{
		{Row{Measured: 3, Theory: &theory}, true},
		{Row{Measured: 3.1, Theory: &theory}, false},
		{Row{Measured: 2.9, Theory: &theory}, false},
		{Row{Measured: 2, Bounds: &[2]float64{0, 2}}, true},
		{Row{Measured: 2.1, Bounds: &[2]float64{0, 2}}, false},
		{Row{Measured: 7}, true},
	} {
		if got := c.row.Within(); got != c.want {
			t.Errorf("%+v: within is %v", c.row, got)
		}
	}
}

func TestReports(t *testing.T) {
	spec := algorithm.Find("ricart-agrawala")
	rows, err := Algorithm(spec, 4)
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"text":     func(b *bytes.Buffer) error { return Text(b, rows) },
		"markdown": func(b *bytes.Buffer) error { return Markdown(b, rows) },
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"ricart-agrawala", "2(N-1)", fmt.Sprint(2 * 3), "Synchronization delay", "Lamport's algorithm"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s lacks %q:\n%s", name, want, out.String())
			}
		}
	}
}

// TestDistance counts hops on a star, where the token comes from the process
// before.
func TestDistance(t *testing.T) {
	spec := &process.Spec{Needs: process.Needs{Topology: process.Tree}}
	cfg := configure(spec, 4, 1)
	s := subject{spec: spec, config: &cfg}
	for p, want := range []int{1, 1, 2, 2} { // from 3 to the centre, from the centre to 1, ...
		if got := s.distance(process.ID(p)); got != want {
			t.Errorf("%d hops to process %d, want %d", got, p, want)
		}
	}
}

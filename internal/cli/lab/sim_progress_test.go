package lab

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/lab/scenario"
)

// TestProgress reports on a run whose clock advances by an hour at every reading.
func TestProgress(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := ui.NewProgress(&out, func() time.Time { now = now.Add(time.Hour); return now })
	sc, err := scenario.Parse("long", []byte("algorithm: lamport\nn: 20\nworkload: {regime: saturated}\nlimit: {entries: 300}\n"))
	if err != nil {
		t.Fatal(err)
	}
	follow(p, sc)
	o, err := sc.Run()
	if err != nil {
		t.Fatal(err)
	}
	p.Done()
	lines := strings.Split(out.String(), "\r\x1b[K")
	if len(lines) < 4 || lines[len(lines)-1] != "" || !strings.HasPrefix(lines[2], "conclave: lamport, n = 20: 8192 events, 1") {
		t.Errorf("%q", lines)
	}
	sc.Progress = nil
	if again, err := sc.Run(); err != nil || again.Result.Events != o.Result.Events {
		t.Errorf("watched, the run has other events: %v", err)
	}
}

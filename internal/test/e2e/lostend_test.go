//go:build linux

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/conclave-io/conclave"
)

var saysDamaged = regexp.MustCompile(`is missing\n|it was cut after it was written\n|is corrupt at byte [0-9]+: `)

// TestLostEndOfLog removes the end of a single server's log, by truncating the file and
// by writing zeros. Either the server refuses to start, with a status that tells its
// supervisor not to try again, or it has everything and continues with larger fences.
func TestLostEndOfLog(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	client := dial(t, conclave.Config{Servers: cluster.Addresses()})
	fence := func() uint64 {
		t.Helper()
		lock, err := client.Lock(within(t), "x")
		if err != nil {
			t.Fatal(err)
		}
		fence, err := lock.Fence()
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Unlock(within(t)); err != nil {
			t.Fatal(err)
		}
		return fence
	}
	logs := func() string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(cluster.Dir(1), "wal", "*.wal"))
		if err != nil || len(found) != 1 {
			t.Fatalf("segments %q (%v), want one", found, err)
		}
		return found[0]
	}
	written := func() int {
		b, err := os.ReadFile(logs())
		if err != nil {
			t.Fatal(err)
		}
		return len(bytes.TrimRight(b, "\x00"))
	}
	for range 10 {
		fence()
	}
	from := written()
	newest := uint64(0)
	for range 5 {
		newest = fence()
	}
	if err := cluster.End(1); err != nil {
		t.Fatal(err)
	}
	path := logs()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := written()
	for n := range 12 {
		at := from + (to-from)*n/12
		zeroed := bytes.Clone(whole)
		clear(zeroed[at:])
		for _, b := range [][]byte{whole[:at], zeroed} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			status, _, said := call(t, cluster.Command(1)...)
			if status != 78 || strings.Count(said, "\n") != 1 || !saysDamaged.MatchString(said) {
				t.Errorf("the log of %d bytes ends at %d: status %d, want 78 and one line that says why:\n%s", to, at, status, said)
			}
		}
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Restart(1); err != nil {
		t.Fatal(err)
	}
	if next := fence(); next <= newest {
		t.Errorf("the whole log: fence %d after %d", next, newest)
	}
}

//go:build linux

package e2e

import (
	"strconv"
	"strings"
	"testing"

	"github.com/conclave-io/conclave"
)

// A command runs under a lock that an algorithm guards. The hold lasts at most 8 s, not
// the TTL of 10 s that the wrapper asked for, and is renewed while the command runs.
func TestCommandUnderALockOfAnAlgorithm(t *testing.T) {
	t.Parallel()
	c := guarded(t, 3, "--view-lease", "8s") // shorter ones end on a busy machine
	tell(t, c, "namespace", "set", "a/", "--algorithm", "suzuki-kasami")
	members(t, dial(t, conclave.Config{Servers: c.Addresses()}), 3)
	before := uint64(0)
	for range 2 {
		status, output, said := call(t, "lock", "a/x", "--servers", strings.Join(c.Addresses(), ","), "--", "sh", "-c", "echo $CONCLAVE_FENCE; sleep 8.5")
		fence, err := strconv.ParseUint(strings.TrimSpace(output), 10, 64)
		if status != 0 || err != nil || fence <= before {
			t.Errorf("after the fence %d the command exits with %d and prints %q; %s", before, status, output, said)
		}
		before = fence
	}
}

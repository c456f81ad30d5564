package cluster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/cli/clitest"
	"github.com/conclave-io/conclave/internal/cli/cluster"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// TestVerifyAuditLog: files that servers wrote are good, and what was altered is named.
func TestVerifyAuditLog(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit.log")
	for _, c := range []struct {
		text   string
		status int
		wants  string
	}{
		{cluster.Acts(3), 0, "4 lines are as servers wrote them; servers reported missing records in 0 places\n"},
		{strings.Replace(cluster.Acts(3), "chief-1", "chief-9", 1), ui.StatusNo, name + ":3: record 2 of acts: its hash is "},
		{strings.Replace(cluster.Acts(3), "\n{\"v\":1,\"chain\":\"acts\",\"number\":\"2\"", "\n{\"v\":2,\"chain\":\"acts\",\"number\":\"2\"", 1), ui.StatusNo, name + ":3: v: 2: must be 1"},
	} {
		if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		status, printed, said := clitest.Run("audit-log", "--verify", name)
		if status != c.status || !strings.HasPrefix(printed+said, c.wants) {
			t.Errorf("status %d, %s%s; want %d, %s", status, printed, said, c.status, c.wants)
		}
	}
}

package cluster_test

import (
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/cli/clitest"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// TestEmptyStack: an empty argument is refused. Only "none" ends the stack.
func TestEmptyStack(t *testing.T) {
	status, printed, said := clitest.Run("view", "set", "", "--servers", "127.0.0.1:1", "--timeout", "100ms")
	if status != ui.StatusError || !strings.Contains(said, "STACK: is empty") {
		t.Errorf("status %d, %s%s", status, printed, said)
	}
}

package cli

import (
	"strings"
	"testing"
)

// TestEmptyStack: an empty argument is refused. Only "none" ends the stack.
func TestEmptyStack(t *testing.T) {
	status, printed, said := inProcess("view", "set", "", "--servers", "127.0.0.1:1", "--timeout", "100ms")
	if status != StatusError || !strings.Contains(said, "STACK: is empty") {
		t.Errorf("status %d, %s%s", status, printed, said)
	}
}

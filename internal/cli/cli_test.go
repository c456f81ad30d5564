package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestFailure: each failure prints one line and has its exit status. An interrupted
// command reports no error.
func TestFailure(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		said   string
	}{
		{errors.New("conclave: two\nlines"), StatusError, "conclave: two; lines\n"},
		{failure(StatusNotAcquired, "not in time"), StatusNotAcquired, "conclave: not in time\n"},
		{fmt.Errorf("the demo: %w", context.Canceled), StatusInterrupted, "conclave: interrupted\n"},
		{failure(StatusLost, "lost: %w", context.Canceled), StatusLost, "conclave: lost: context canceled\n"},
	} {
		var said bytes.Buffer
		a := &app{stderr: &said}
		if status := fail(a, Command(), c.err); status != c.status || said.String() != c.said {
			t.Errorf("%v: status %d, %q, want %d, %q", c.err, status, said.String(), c.status, c.said)
		}
	}
}

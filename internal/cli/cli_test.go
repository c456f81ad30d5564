package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/internal/cli/ui"
)

// TestFailure: each failure prints one line and has its exit status. An interrupted
// command reports no error.
func TestFailure(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		said   string
	}{
		{errors.New("conclave: two\nlines"), ui.StatusError, "conclave: two; lines\n"},
		{ui.Failure(ui.StatusNotAcquired, "not in time"), ui.StatusNotAcquired, "conclave: not in time\n"},
		{fmt.Errorf("the demo: %w", context.Canceled), ui.StatusInterrupted, "conclave: interrupted\n"},
		{ui.Failure(ui.StatusLost, "lost: %w", context.Canceled), ui.StatusLost, "conclave: lost: context canceled\n"},
	} {
		var said bytes.Buffer
		a := &ui.App{Stderr: &said}
		if status := fail(a, Command(), c.err); status != c.status || said.String() != c.said {
			t.Errorf("%v: status %d, %q, want %d, %q", c.err, status, said.String(), c.status, c.said)
		}
	}
}

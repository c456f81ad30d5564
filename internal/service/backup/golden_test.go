package backup

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/internal/test/golden"
)

// TestGoldenBackup: a file of the first release is read, and written, at its level.
func TestGoldenBackup(t *testing.T) {
	b, err := Decode(golden.Same(t, 1, "backup", fileOf(t)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(header, b.Header); diff != "" {
		t.Error(diff)
	}
	if again := b.Registry.Freeze().Encode(); !bytes.Equal(again, state(t).Freeze().Encode()) {
		t.Errorf("the state is another:\n%x\n%x", again, state(t).Freeze().Encode())
	}
}

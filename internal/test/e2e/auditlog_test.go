package e2e

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/service/audit"
)

// TestAuditLogOnStandardOutput: with --audit-log - the audit log, and nothing else, is on
// standard output, from start to stop.
func TestAuditLogOnStandardOutput(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(within(t), binary, "serve", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--peer-listen", "127.0.0.1:0", "--audit-log", "-")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for chunk := make([]byte, 4096); !strings.Contains(text.String(), `"kind":"start"`); {
		n, err := pipe.Read(chunk)
		text.Write(chunk[:n])
		if err != nil {
			t.Fatalf("%v\n%s", err, text.String())
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(&text, pipe); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	verifier := audit.NewVerifier()
	var last jsonform.AuditRecord
	for line := range strings.Lines(text.String()) {
		verifier.Line("standard output", []byte(strings.TrimSuffix(line, "\n")))
		if last, err = audit.ParseLine([]byte(line)); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
	if len(verifier.Problems) > 0 || last.Kind != "stop" || !strings.HasPrefix(last.Reason, "version ") {
		t.Errorf("%v\n%s", verifier.Problems, text.String())
	}
}

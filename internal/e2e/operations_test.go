//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/conclave-io/conclave/internal/selftest"
)

// TestClusterOnThreeMachines runs the commands by which docs/operations.md makes a cluster
// with certificates, as they stand there. Only the machines are others: three addresses of
// this one.
func TestClusterOnThreeMachines(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := selftest.Blocks(string(page), "sh")
	find := func(begin string) string {
		t.Helper()
		for _, block := range blocks {
			if strings.HasPrefix(block, begin) {
				return block
			}
		}
		t.Fatalf("docs/operations.md has no commands that begin with %q", begin)
		return ""
	}
	dir := t.TempDir()
	machines := fmt.Sprintf("127.%d.%d.", 1+rand.IntN(254), rand.IntN(255))
	shell := func(script string) *exec.Cmd {
		script = strings.ReplaceAll(script, "10.0.0.", machines)
		cmd := exec.Command("sh", "-euc", strings.ReplaceAll(script, "/var/lib/conclave", filepath.Join(dir, "data")))
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH"), "HOME=" + dir}
		return cmd
	}
	run := func(script string) string {
		t.Helper()
		out, err := shell(script).CombinedOutput()
		if err != nil {
			t.Fatalf("%s\n%v\n%s", script, err, out)
		}
		return string(out)
	}
	run(find("conclave cert authority"))
	serve := find("conclave serve --id 1 --data /var/lib/conclave")
	for id := 1; id <= 3; id++ {
		own := strings.NewReplacer("--id 1", fmt.Sprint("--id ", id), "--listen 10.0.0.1", fmt.Sprint("--listen 10.0.0.", id),
			"server-1", fmt.Sprint("server-", id), "/var/lib/conclave", fmt.Sprint("/var/lib/conclave", id))
		server := shell("exec " + own.Replace(serve))
		var said bytes.Buffer
		server.Stderr = &said
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			if err := server.Wait(); err != nil || t.Failed() {
				t.Errorf("server %d: %v\n%s", id, err, said.String())
			}
		})
	}
	if err := os.WriteFile(filepath.Join(dir, "report.sh"), []byte("#!/bin/sh\necho reported with fence $CONCLAVE_FENCE\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	use := find("export CONCLAVE_SERVERS")
	if out := run(use); !strings.Contains(out, "reported with fence ") {
		t.Errorf("the commands print\n%s", out)
	}
	// Who a client is, the servers say.
	settings, _, _ := strings.Cut(use, "conclave lock")
	if out := run(settings + "conclave lock nightly -- conclave sessions"); !strings.Contains(out, "cert:alice") {
		t.Errorf("alice is not in\n%s", out)
	}
	// Without a certificate nobody gets in, and is told why.
	if out, err := shell("export CONCLAVE_SERVERS=10.0.0.1:7400; conclave status --cacert certs/ca.pem --timeout 5s").CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "set --cert and --key") {
		t.Errorf("without a certificate: %v\n%s", err, out)
	}
}

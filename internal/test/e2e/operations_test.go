//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/conclave-io/conclave/internal/test/selftest"
)

// machines is a cluster of three machines with certificates, made by the commands in
// docs/operations.md as they stand. Only the machines differ: they are three addresses of
// this machine.
type machines struct {
	t         *testing.T
	dir       string
	addresses string // what their addresses begin with
	blocks    []string
}

// auditLog is where the servers have their audit logs, by the documents.
const auditLog = "/var/log/conclave-audit.log"

// startMachines starts the cluster, with more flags for each server.
func startMachines(t *testing.T, flags string) *machines {
	t.Helper()
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	c := &machines{t, t.TempDir(), fmt.Sprintf("127.%d.%d.", 1+rand.IntN(254), rand.IntN(255)), selftest.Blocks(string(page), "sh")}
	c.run(c.find("conclave cert authority"))
	serve := c.find("conclave serve --id 1 --data /var/lib/conclave")
	for id := 1; id <= 3; id++ {
		own := strings.NewReplacer("--id 1", fmt.Sprint("--id ", id), "--listen 10.0.0.1", fmt.Sprint("--listen 10.0.0.", id),
			"server-1", fmt.Sprint("server-", id), "/var/lib/conclave", fmt.Sprint("/var/lib/conclave", id))
		server := c.shell("exec " + strings.TrimSpace(own.Replace(serve)) + strings.ReplaceAll(flags, auditLog, fmt.Sprintf("audit-%d.log", id)))
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
	return c
}

// find returns the commands in the page that begin so.
func (c *machines) find(begin string) string {
	c.t.Helper()
	i := slices.IndexFunc(c.blocks, func(block string) bool { return strings.HasPrefix(block, begin) })
	if i < 0 {
		c.t.Fatalf("docs/operations.md has no commands that begin with %q", begin)
	}
	return c.blocks[i]
}

// shell returns what runs a script, as if on one of the machines.
func (c *machines) shell(script string) *exec.Cmd {
	script = strings.ReplaceAll(script, "10.0.0.", c.addresses)
	// Those of the first server.
	script = strings.NewReplacer("/var/lib/conclave/", "/var/lib/conclave1/", auditLog, "audit-1.log").Replace(script)
	cmd := exec.Command("sh", "-euc", strings.ReplaceAll(script, "/var/lib/conclave", filepath.Join(c.dir, "data")))
	cmd.Dir, cmd.Env = c.dir, []string{"PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH"), "HOME=" + c.dir}
	return cmd
}

func (c *machines) run(script string) string {
	c.t.Helper()
	out, err := c.shell(script).CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s\n%v\n%s", script, err, out)
	}
	return string(out)
}

// TestClusterOnThreeMachines runs the commands by which docs/operations.md makes and uses a
// cluster with certificates.
func TestClusterOnThreeMachines(t *testing.T) {
	t.Parallel()
	c := startMachines(t, "")
	if err := os.WriteFile(filepath.Join(c.dir, "report.sh"), []byte("#!/bin/sh\necho reported with fence $CONCLAVE_FENCE\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	use := c.find("export CONCLAVE_SERVERS")
	if out := c.run(use); !strings.Contains(out, "reported with fence ") {
		t.Errorf("the commands print\n%s", out)
	}
	// Who a client is, the servers say.
	settings, _, _ := strings.Cut(use, "conclave lock")
	if out := c.run(settings + "conclave lock nightly -- conclave sessions"); !strings.Contains(out, "cert:alice") {
		t.Errorf("alice is not in\n%s", out)
	}
	// Without a certificate nobody gets in, and is told why.
	if out, err := c.shell("export CONCLAVE_SERVERS=10.0.0.1:7400; conclave status --cacert certs/ca.pem --timeout 5s").CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "set --cert and --key") {
		t.Errorf("without a certificate: %v\n%s", err, out)
	}
}

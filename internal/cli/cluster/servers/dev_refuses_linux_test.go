package servers

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/conclave-io/conclave/internal/cli/ui"
)

// refused runs dev, which has to end with one line that matches.
func refused(t *testing.T, pattern string, args ...string) []string {
	t.Helper()
	cmd, out := launch(t, append([]string{"dev"}, args...)...)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != ui.StatusError {
		t.Errorf("it ends with %v", err)
	}
	said := out.text.String()
	match := regexp.MustCompile(pattern).FindStringSubmatch(said)
	if match == nil || strings.Count(said, "\n") != 1 {
		t.Fatalf("it says %q, not one line that matches %s", said, pattern)
	}
	return match
}

func TestDevStartsNothingBesideAnotherDev(t *testing.T) {
	base := freeRange(t, 3)
	port := strconv.Itoa(base)
	first, out := launch(t, "dev", "--port", port, "--servers", "1")
	out.await(t, `export CONCLAVE_SERVERS=`)
	pattern := fmt.Sprintf(`^conclave: 127\.0\.0\.1:%d: in use by another process.*--port (\d+)`, base)
	other := refused(t, pattern, "--port", port)[1]
	second, out2 := launch(t, "dev", "--port", other)
	out2.await(t, `export CONCLAVE_SERVERS=127\.0\.0\.1:`+other+`,`)
	end(t, second, out2, syscall.SIGINT)
	end(t, first, out, syscall.SIGINT)
}

// The check includes the address for other servers, and the addresses of the last server.
func TestDevLooksAtEveryAddress(t *testing.T) {
	base := freeRange(t, 3)
	for _, port := range []int{base + 2, base + 100, base + 102} {
		taken, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "data")
		refused(t, fmt.Sprintf(`^conclave: 127\.0\.0\.1:%d: in use by another process.*--port \d+`, port), "--port", strconv.Itoa(base), "--data", dir)
		if _, err := os.Stat(dir); err == nil {
			t.Error("it made a directory that it has no use for")
		}
		taken.Close()
	}
}

// Another process may take an address between the check and the start, and answer in
// place of the server.
func TestDevIsNotDeceivedByAnothersAnswer(t *testing.T) {
	base := freeRange(t, 1)
	taken, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", base))
	if err != nil {
		t.Fatal(err)
	}
	yes := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	served := make(chan error)
	go func() { served <- yes.Serve(taken) }()
	defer func() { yes.Close(); <-served }()
	binary, err := exec.LookPath("conclave")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c := &devCluster{
		app: &ui.App{Stdout: &out, Stderr: &out}, binary: binary, dir: t.TempDir(), ready: make(chan struct{}),
		clients: []string{taken.Addr().String()}, peers: []string{fmt.Sprint("127.0.0.1:", base+100)},
	}
	ctx, cancel := context.WithTimeout(t.Context(), devLimit)
	defer cancel()
	if err := c.run(ctx); err == nil || !strings.Contains(err.Error(), "server 1: listen: "+c.clients[0]+" is taken by another process") {
		t.Errorf("it ends with %v", err)
	}
	if strings.Contains(out.String(), "are up") {
		t.Errorf("a server that could not start is said to be up:\n%s", &out)
	}
}

// A server's data directory that is a file keeps it from starting.
func TestDevSaysWhyAServerDoesNotStart(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "server-1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"dev", "--port", strconv.Itoa(freeRange(t, 1)), "--servers", "1", "--data", dir}
	fails := func(pattern string) {
		t.Helper()
		cmd, out := launch(t, args...)
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != ui.StatusError {
			t.Errorf("it ends with %v", err)
		}
		out.await(t, pattern)
	}
	fails(`(?m)^conclave: server 1: .*server-1.*not a directory`)
	// On a full disk the server cannot write down why it ends.
	log := filepath.Join(dir, "server-1.log")
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", log); err != nil {
		t.Fatal(err)
	}
	fails(`(?m)^conclave: server 1: .*no space left on device`)
}

package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestJSONLogHasOnlyJSON: with --log-format json, each line of a server is JSON: where it takes
// clients, what it logs, and the error that ends it, whichever way the format was set.
func TestJSONLogHasOnlyJSON(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	serve := []string{"serve", "--data", data, "--listen", "127.0.0.1:0", "--peer-listen", "127.0.0.1:0"}
	cmd := exec.Command(binary, append(serve, "--log-format", "json")...)
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Error(err)
	}
	for _, key := range []string{"server", "cluster", "listen", "peer_listen", "data"} {
		if fields(t, first)[0][key] == nil {
			t.Errorf("no %s in %s", key, first)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	fields(t, log.String())
	fields(t, string(rest))

	for _, wrong := range [][]string{
		append(serve, "--log-format", "json", "--cluster-name", "other"),
		append(serve, "--log-format", "json", "--heartbeat", "0s"),
		append(serve, "--log-format", "json", "--no-such-flag"),
	} {
		status, stdout, said := call(t, wrong...)
		lines := fields(t, said)
		if status != 78 || stdout != "" || len(lines) != 1 || lines[0]["level"] != "ERROR" || lines[0]["err"] == "" {
			t.Errorf("%q exits with %d and prints %q and %q", wrong, status, stdout, said)
		}
	}
}

// fields returns the lines of a log as JSON.
func fields(t *testing.T, log string) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(log) {
		var found map[string]any
		if err := json.Unmarshal([]byte(line), &found); err != nil {
			t.Errorf("%q is not JSON: %v", line, err)
		}
		lines = append(lines, found)
	}
	return lines
}

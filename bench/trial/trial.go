// Package trial has helpers for long tests that run three servers as processes. These tests run
// only if LONG is set.
package trial

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/cli/local"
)

// Cluster is a cluster of three servers.
type Cluster struct {
	*local.Cluster
	t       *testing.T
	timeout time.Duration
}

// Build builds the program. It returns the path of the program and a directory for the data of the
// servers. Without LONG, it skips the test and names the make target that runs it.
func Build(t *testing.T, target string) (dir, binary string) {
	t.Helper()
	if os.Getenv("LONG") == "" {
		t.Skipf("LONG is not set: see make %s", target)
	}
	dir = t.TempDir()
	binary = filepath.Join(dir, "conclave")
	build := exec.Command("go", "build", "-o", binary, "./cmd/conclave")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir, binary
}

// Start starts the servers, and stops them at the end of the test. If the test failed, it logs
// their output. timeout is the maximum time to wait for an expected event.
func Start(t *testing.T, dir, binary string, timeout time.Duration) *Cluster {
	t.Helper()
	running, err := local.Start(local.Config{Binary: binary, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			for id := 1; id <= 3; id++ {
				text, _ := os.ReadFile(running.LogFile(id))
				t.Logf("server %d:\n%s", id, text)
			}
		}
	})
	return &Cluster{Cluster: running, t: t, timeout: timeout}
}

// Get sends a request to a server. If the server does not answer, the status is 0 and the text is
// the error.
func (c *Cluster) Get(id int, path string) (status int, text string) {
	client := http.Client{Timeout: c.timeout}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://" + c.Addresses()[id-1] + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// Figure returns the text of a metric of a server, or "".
func (c *Cluster) Figure(id int, name string) string {
	_, text := c.Get(id, "/metrics")
	if found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// Leader returns the leading server, or 0 if no server reports that it leads.
func (c *Cluster) Leader() int {
	for id := 1; id <= 3; id++ {
		if c.Figure(id, "conclave_is_leader") == "1" {
			return id
		}
	}
	return 0
}

// Until repeats a check until it succeeds.
func (c *Cluster) Until(what string, yes func() bool) {
	c.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(c.timeout); !yes(); <-tick.C {
		if time.Now().After(end) {
			c.t.Fatalf("after %v still not: %s", c.timeout, what)
		}
	}
}

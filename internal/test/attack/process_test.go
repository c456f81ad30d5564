package attack

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/local"
)

// waitWithoutAnswer waits a second for a lock while no server answers, and for a lock that is held. The
// exit status 124 means that another client has the lock, and scripts rely on it. So the command must
// only exit with 124 if the cluster has answered.
func waitWithoutAnswer(w *world) {
	binary := w.binary()
	lock := func(what string, servers []string, status int, words ...string) {
		w.Helper()
		cmd := exec.CommandContext(w.within(), binary, "lock", "x", "--servers", strings.Join(servers, ","), "--wait", "1s", "--quiet", "--", "true")
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != status {
			w.Errorf("%s: %v, want status %d; it said: %s", what, err, status, out)
		}
		if len(words) == 0 && len(out) > 0 {
			w.Errorf("%s: it says %q, want nothing", what, out)
		}
		for _, word := range words {
			if bytes.Count(out, []byte("\n")) != 1 || !strings.Contains(string(out), word) {
				w.Errorf("%s: it says %q, want one line with %q", what, out, word)
			}
		}
	}
	unknown := []string{`lock "x": the cluster did not answer within 1s (`, "); whether it is free is unknown\n"}
	lock("nothing", []string{"127.0.0.1:1"}, 125, append(unknown, "127.0.0.1:1: connection refused")...)

	cluster, err := local.Start(local.Config{Binary: binary, Dir: w.TempDir()})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			w.Error(err)
		}
	})
	servers := cluster.Addresses()
	client, err := conclave.Dial(w.within(), conclave.Config{Servers: servers, TTL: time.Minute})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { client.Close() })
	if _, err := client.Lock(w.within(), "x"); err != nil {
		w.Fatal(err)
	}
	program := func(what string, unavailable bool) {
		w.Helper()
		short, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		if _, err := client.Lock(short, "x"); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, conclave.ErrUnavailable) != unavailable {
			w.Errorf("%s: a program is told %v, want the end of its context; ErrUnavailable: %v", what, err, unavailable)
		}
	}
	lock("a held lock", servers, 124) // which is no failure, so --quiet says nothing
	program("a held lock", false)

	all := func(signal syscall.Signal) {
		for id := range servers {
			if err := cluster.Signal(id+1, signal); err != nil {
				w.Fatal(err)
			}
		}
	}
	all(syscall.SIGSTOP)
	lock("servers that are stopped", servers, 125, unknown...)
	program("servers that are stopped", true)
	all(syscall.SIGCONT)

	for id := range 2 {
		if err := cluster.Kill(id + 1); err != nil {
			w.Fatal(err)
		}
	}
	lock("a minority", servers, 125, unknown...)
}

// binary builds conclave.
func (w *world) binary() string {
	w.Helper()
	binary := filepath.Join(w.TempDir(), "conclave")
	if said, err := exec.Command("go", "build", "-o", binary, "github.com/conclave-io/conclave/cmd/conclave").CombinedOutput(); err != nil {
		w.Fatalf("%v: %s", err, said)
	}
	return binary
}

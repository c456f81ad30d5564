//go:build linux

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// TestClusterLostWhileQueued stops the servers while a command waits in a queue: the fact
// that it was queued once proves nothing at the end of its wait.
func TestClusterLostWhileQueued(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	client := dial(t, conclave.Config{Servers: cluster.Addresses(), TTL: time.Minute})
	if _, err := client.Lock(within(t), "x"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		refused(t, 125, []string{`lock "x": the cluster did not answer within 5s (`, "whether it is free is unknown"},
			"lock", "x", "--quiet", "--servers", cluster.Addresses()[0], "--wait", "5s", "--", "true")
	}()
	until(t, "the command waits", func() bool {
		why, err := client.Explain(within(t), "x")
		return err == nil && len(why.Resource.Waiters) == 1
	})
	if err := cluster.Signal(1, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	<-ended
	if err := cluster.Signal(1, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// TestStoppedServerIsStillOne asks a server that is stopped, until connections to it have timed out. It
// was called "not a Conclave server" then, or its TLS was blamed.
func TestStoppedServerIsStillOne(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	cert, key := authority.Issue("server")
	for name, flags := range map[string][]string{"plain": nil, "TLS": {"--tls-cert", cert, "--tls-key", key}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := startCluster(t, 1, flags...)
			ask := []string{"status", "--servers", cluster.Addresses()[0], "--timeout", "9s"}
			cfg := conclave.Config{Servers: cluster.Addresses()}
			if flags != nil {
				ask, cfg.TLS = append(ask, "--cacert", authority.File), authority.Client("program")
			}
			dial(t, cfg) // it is up
			if err := cluster.Signal(1, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			status, _, said := call(t, ask...)
			if status != 125 || !strings.Contains(said, ": no answer within ") || strings.Contains(said, "not a Conclave") || strings.Contains(said, "TLS") {
				t.Errorf("status %d, %q", status, said)
			}
			if err := cluster.Signal(1, syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestWaitOutlastsTheServers: --wait is how long the user is willing to wait, with a quorum or without.
// The command gave up after the 10 seconds of --timeout, and a holder that was asked to leave was not waited for.
func TestWaitOutlastsTheServers(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	client := dial(t, conclave.Config{Servers: cluster.Addresses(), TTL: time.Minute, Program: "first"})
	first := lockUnder(t, within(t), client, "x")
	calls := [][]string{
		{"lock", "y", "--timeout", "500ms", "--wait", "50s", "--servers", cluster.Addresses()[0], "--", "true"},
		{"release", "x", "--force", "--timeout", "500ms", "--wait", "50s", "--servers", cluster.Addresses()[0]},
	}
	status := make(chan string, len(calls))
	run := func(args []string) {
		got, _, said := call(t, args...)
		status <- fmt.Sprintf("%s: %d %s", args[0], got, said)
	}
	go run(calls[1])
	<-first.Context().Done() // it was asked
	if err := cluster.Signal(1, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	go run(calls[0])
	var got []string
	select {
	case ended := <-status:
		got = append(got, "too early: "+ended)
	case <-time.After(3 * time.Second):
	}
	if err := cluster.Signal(1, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := first.Unlock(within(t)); err != nil {
		t.Error(err)
	}
	for len(got) < len(calls) {
		got = append(got, <-status)
	}
	slices.Sort(got)
	if want := []string{"lock: 0 ", "release: 0 "}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestWaitWithoutAnswerOverHTTP waits for a lock over HTTP: 423 means that the cluster
// answered and the lock is held, 503 that no server answered.
func TestWaitWithoutAnswerOverHTTP(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 3)
	post := func(server, path, body string) (int, string) {
		t.Helper()
		r, err := http.Post("http://"+server+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		answer, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(answer)
	}
	client := dial(t, conclave.Config{Servers: cluster.Addresses(), TTL: time.Minute})
	if _, err := client.Lock(within(t), "x"); err != nil {
		t.Fatal(err)
	}
	status, err := admin.New(client).Status(within(t))
	if err != nil {
		t.Fatal(err)
	}
	leader := int(status.Leader)
	server := cluster.Addresses()[leader-1]
	const session = "00112233445566778899aabbccddeeff"
	if code, said := post(server, "/v1/open", fmt.Sprintf(`{"session": %q, "ttl": "1m"}`, session)); code != 200 {
		t.Fatal(code, said)
	}
	acquire := fmt.Sprintf(`{"session": %q, "name": "x", "wait": "1s"}`, session)
	// The request has left the queue before it is answered so. On a busy machine that may take
	// longer than the server waits, and the answer is 503.
	until(t, "a lock that is held is answered with 423", func() bool {
		code, said := post(server, "/v1/acquire", acquire)
		if code != 423 && code != 503 {
			t.Errorf("a lock that is held: %d %s, want 423", code, said)
		}
		return code == 423 && strings.Contains(said, "TIMEOUT")
	})
	for id := 1; id <= cluster.Servers(); id++ {
		if id != leader {
			if err := cluster.Kill(id); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 { // first while it may still take itself for the leader, then when it knows
		if code, said := post(server, "/v1/acquire", acquire); code != 503 {
			t.Errorf("a minority: %d %s, want 503", code, said)
		}
	}
}

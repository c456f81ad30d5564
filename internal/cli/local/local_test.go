package local

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestNoPortIsGivenTwice: not even while nobody listens on those that were given, and not to
// another process.
func TestNoPortIsGivenTwice(t *testing.T) {
	seen := make(map[string]bool)
	for i := range 50 {
		given, err := freePorts(6)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range given {
			if seen[p] {
				t.Fatalf("%s is given twice", p)
			}
			seen[p] = true
		}
		if i%10 == 9 {
			ports.next, ports.end = 0, 0 // as in another process that begins at the same block
		}
	}
}

// script makes a file that can stand in for the binary.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "binary")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestServersAreToldWhoTheyAre(t *testing.T) {
	c, err := Start(Config{Binary: script(t, `echo "$@"; exec sleep 60`), Dir: t.TempDir(), Servers: 2, Flags: []string{"--extra"}})
	if err != nil {
		t.Fatal(err)
	}
	for id := 1; id <= 2; id++ {
		said := await(t, c, id)
		for _, word := range append(strings.Split(c.Peers(), ","), c.Addresses()[id-1], c.Dir(id), "--extra") {
			if !strings.Contains(said, word) {
				t.Errorf("server %d is started with %q, without %q", id, said, word)
			}
		}
	}
	if err := c.Died(); err != nil {
		t.Error(err)
	}
	if err := c.Kill(1); err != nil {
		t.Error(err)
	}
	if err := c.Kill(1); err == nil {
		t.Error("a server was killed twice")
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}

func TestServersRunWhereTheyAreTold(t *testing.T) {
	c, err := Start(Config{
		Binary: script(t, `echo "$@"; exec sleep 60`), Dir: t.TempDir(), Hosts: []string{"10.0.0.1", "10.0.0.2"},
		Via: func(id int) []string {
			return []string{"env", "PLACE=there", "sh", "-c", `echo in place $PLACE; exec "$@"`, "sh"}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	said := await(t, c, 2)
	if want := "in place there"; !strings.Contains(said, want) {
		t.Errorf("server 2 says %q, without %q", said, want)
	}
	if got, want := c.Addresses(), []string{"10.0.0.1:7400", "10.0.0.2:7400"}; !slices.Equal(got, want) {
		t.Errorf("clients find the servers at %v, want %v", got, want)
	}
	if got, want := c.Peers(), "1=10.0.0.1:7500,2=10.0.0.2:7500"; got != want {
		t.Errorf("the founders are %q, want %q", got, want)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}

func TestDeathIsReported(t *testing.T) {
	c, err := Start(Config{Binary: script(t, "echo first; echo why it ended; exit 3"), Dir: t.TempDir(), Servers: 1})
	if err != nil {
		t.Fatal(err)
	}
	<-c.process(1).done
	if err := c.Died(); err == nil || !strings.Contains(err.Error(), "why it ended") {
		t.Errorf("the death of a server is reported as %v", err)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}

func TestServerThatNeverRan(t *testing.T) {
	var g Group
	if err := g.Signal(2, os.Interrupt); err == nil || err.Error() != "server 2 is not running" {
		t.Errorf("a signal to it: %v", err)
	}
	if pid := g.PID(2); pid != 0 {
		t.Errorf("it is process %d", pid)
	}
}

func TestBinaryThatIsNone(t *testing.T) {
	if _, err := Start(Config{Binary: filepath.Join(t.TempDir(), "nowhere"), Dir: t.TempDir()}); err == nil {
		t.Fatal("a cluster runs without a binary")
	}
}

// await waits until a server has said something.
func await(t *testing.T, c *Cluster, id int) string {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if said, err := os.ReadFile(c.LogFile(id)); err == nil && len(said) > 0 {
			return string(said)
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("server %d says nothing", id)
		}
	}
}

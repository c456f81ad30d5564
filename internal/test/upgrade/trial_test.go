//go:build linux

package upgrade

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/local"
	"github.com/conclave-io/conclave/internal/kit/wire"
)

// testTimeout is how long a test waits for what must happen soon.
const testTimeout = 60 * time.Second

// trial is a cluster whose servers are of different ages.
type trial struct {
	*testing.T
	pair
	cluster *local.Cluster
	ages    []int // of the servers, from index 0
	client  *conclave.Client
	load    *load
	base    uint32 // the level of the cluster before servers are replaced
	founded time.Time
}

// found starts a cluster of servers of the given ages, under load.
func found(t *testing.T, p pair, ages ...int) *trial {
	t.Helper()
	tr := &trial{T: t, pair: p, ages: ages, founded: time.Now()}
	// The cluster has one binary, a shell script. The script runs the binary of the
	// server's release.
	var err error
	tr.cluster, err = local.Start(local.Config{Binary: p.age[old], Dir: t.TempDir(), Servers: len(ages), Via: func(id int) []string {
		return []string{"sh", "-c", `shift; exec "$0" "$@"`, tr.binary(id)}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(tr.cluster.Died(), tr.cluster.Stop()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			tr.showLogs()
		}
	})
	return tr
}

func (tr *trial) binary(id int) string { return tr.age[tr.ages[id-1]] }

func (tr *trial) showLogs() {
	for id := 1; id <= tr.cluster.Servers(); id++ {
		log, err := os.ReadFile(tr.cluster.LogFile(id))
		if err != nil {
			tr.Log(err)
		}
		tr.Logf("server %d said:\n%s", id, log[max(0, len(log)-1500):])
	}
}

func (tr *trial) servers() string { return strings.Join(tr.cluster.Addresses(), ",") }

// settle waits until an unused cluster is at the newest level that its servers read, and
// stays there. v0.1.0 reports as an obstacle that no server reads a higher level.
func (tr *trial) settle() {
	tr.Helper()
	until(tr.T, "the level is the newest", func() bool {
		u, err := tr.ask(old, "status")
		tr.base = u.Level
		young := time.Since(tr.founded) < 4*time.Second
		return err == nil && u.Level > 0 && u.Level == u.Target && !slices.ContainsFunc(u.Obstacles, missingServer) && !young
	})
}

func missingServer(obstacle string) bool { return strings.Contains(obstacle, ": not connected") }

// begin attaches the director, and the load.
func (tr *trial) begin() {
	tr.Helper()
	tr.client = dial(tr.T, conclave.Config{Servers: tr.cluster.Addresses()})
	tr.load = tr.startLoad(tr.T, tr.cluster, filepath.Join(tr.TempDir(), "load"))
	tr.load.goesOn(tr.T)
}

// stop ends a server, with SIGTERM or SIGKILL.
func (tr *trial) stop(id int, signal syscall.Signal) {
	tr.Helper()
	end := tr.cluster.End
	if signal == syscall.SIGKILL {
		end = tr.cluster.Kill
	}
	if err := end(id); err != nil {
		tr.Fatal(err)
	}
}

// start starts a server as a release, and waits until it follows.
func (tr *trial) start(id, age int) {
	tr.Helper()
	tr.ages[id-1] = age
	if err := tr.cluster.Restart(id); err != nil {
		tr.Fatal(err)
	}
	until(tr.T, fmt.Sprintf("server %d follows", id), func() bool {
		if err := tr.cluster.Died(); err != nil {
			tr.Fatal(err)
		}
		members, _ := admin.New(tr.client).Members(within(tr.T))
		for _, m := range members {
			if m.ID == uint64(id) {
				return m.Voter && m.Connected && m.MatchIndex > 0 && m.Behind < 100
			}
		}
		return false
	})
}

// replace starts a server again as another release.
func (tr *trial) replace(id, age int, signal syscall.Signal) {
	tr.Helper()
	tr.stop(id, signal)
	tr.start(id, age)
	tr.load.goesOn(tr.T)
}

// led waits for a leader of a release, and stops leaders of the other release until there
// is one.
func (tr *trial) led(age int) {
	tr.Helper()
	for range 20 {
		var leader int
		until(tr.T, "a leader is known", func() bool {
			s, err := admin.New(tr.client).Status(within(tr.T))
			leader = int(s.Leader)
			return err == nil && leader != 0
		})
		if tr.ages[leader-1] == age {
			return
		}
		tr.replace(leader, tr.ages[leader-1], syscall.SIGTERM)
	}
	tr.Fatal("no server of the wanted age comes to lead")
}

// empty removes the data of a server, which gets a snapshot from the leader, of the given
// release.
func (tr *trial) empty(id, leader int) {
	tr.Helper()
	tr.led(leader)
	tr.stop(id, syscall.SIGKILL)
	if err := os.RemoveAll(tr.cluster.Dir(id)); err != nil {
		tr.Fatal(err)
	}
	tr.start(id, tr.ages[id-1])
	tr.load.goesOn(tr.T)
}

// upgrade is what `conclave upgrade` prints with --json.
type upgrade struct {
	Level     uint32   `json:"level"`
	Target    uint32   `json:"target"`
	Held      bool     `json:"held"`
	RisesIn   string   `json:"rises_in"`
	Obstacles []string `json:"obstacles"`
}

// ask runs `conclave upgrade` of a release, and returns its output, or its error.
func (tr *trial) ask(age int, step string) (u upgrade, err error) {
	tr.Helper()
	cmd := exec.Command(tr.age[age], "upgrade", step, "--json", "--servers", tr.servers())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return u, fmt.Errorf("conclave upgrade %s: %w: %s", step, err, &stderr)
	}
	return u, json.Unmarshal(stdout.Bytes(), &u)
}

// at requires that the cluster is at a level. It returns the answer, which must be the
// same for clients of both releases.
func (tr *trial) at(level uint32) (u upgrade) {
	tr.Helper()
	for age := range tr.age {
		var err error
		if u, err = tr.ask(age, "status"); err != nil || u.Level != level {
			tr.Fatalf("level %d is wanted: %+v, %v", level, u, err)
		}
	}
	return u
}

// refused requires that a release does not start with the data of a server that is
// down: it ends with a failure, with the exit status 78 after v0.1.0, and its last line says why.
func (tr *trial) refused(id, age int, why ...string) {
	tr.Helper()
	tr.refusedAs(age, why, tr.cluster.Command(id)...)
}

func (tr *trial) refusedAs(age int, why []string, args ...string) {
	tr.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, tr.age[age], args...)
	local.Prepare(cmd)
	said, _ := cmd.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	last := lines[len(lines)-1]
	want := []int{78}
	if tr.name != next.Name {
		want = append(want, 125) // of v0.1.0, if its snapshot has a higher format
	}
	if status := cmd.ProcessState.ExitCode(); !slices.Contains(want, status) {
		tr.Errorf("exit status %d, want one of %d; it said: %s", status, want, said)
	}
	for _, want := range why {
		if !strings.Contains(last, want) {
			tr.Errorf("it does not say %q, but: %s", want, last)
		}
	}
	tr.Logf("refused: %s", last)
}

// alike requires that all servers reach the same state, byte for byte, once nothing
// changes any more. The binaries of an age read the files.
func (tr *trial) alike(age int) {
	tr.Helper()
	until(tr.T, "all servers have applied the same entries", func() bool {
		var first uint64
		var state []byte
		for id := 1; id <= len(tr.ages); id++ {
			index, own := tr.backup(age, id)
			if id == 1 {
				first, state = index, own
			}
			switch {
			case index != first:
				return false
			case !bytes.Equal(own, state):
				tr.Fatalf("at index %d server %d has another state than server 1:\n%x\n%x", index, id, own, state)
			}
		}
		tr.Logf("at index %d all servers have the same %d bytes", first, len(state))
		return true
	})
}

// backup has one server's state saved, and returns it, and the index.
func (tr *trial) backup(age, id int) (index uint64, state []byte) {
	tr.Helper()
	path := filepath.Join(tr.TempDir(), "backup")
	said, err := exec.Command(tr.age[age], "snapshot", "save", path, "--stale", "--servers", tr.cluster.Addresses()[id-1]).CombinedOutput()
	if err != nil {
		tr.Fatalf("%v: %s", err, said)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		tr.Fatal(err)
	}
	// What this tree does not read is compared too: see the format in internal/service/backup.
	const front = 16 + 1 + 8
	r := wire.NewReader(file[front : len(file)-sha256.Size])
	_, _, _, _ = r.Uint(), r.String(), r.Uint(), r.String()
	_, _ = r.Int(), r.Bool()
	index, _ = r.Uint(), r.Uint()
	state = r.Bytes()
	if err := r.Close(); err != nil {
		tr.Fatal(err)
	}
	return index, state
}

// snapshots returns the index of the newest snapshot of a server.
func (tr *trial) snapshot(id int) (newest uint64) {
	files, _ := filepath.Glob(filepath.Join(tr.cluster.Dir(id), "snap", "*.snap"))
	for _, file := range files {
		_, index, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".snap"), "-")
		at, _ := strconv.ParseUint(index, 16, 64)
		newest = max(newest, at)
	}
	return newest
}

// dial attaches a client of this process.
func dial(t *testing.T, cfg conclave.Config) *conclave.Client {
	t.Helper()
	client, err := conclave.Dial(within(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// until asks again and again until the answer is yes.
func until(t *testing.T, what string, yes func() bool) {
	t.Helper()
	deadline := time.After(testTimeout)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !yes() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("after %v still not: %s", testTimeout, what)
		}
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/local"
)

// writerRole makes the test binary the command that runs under the lock.
const writerRole = "__writer"

// writer appends its name and the time to a file every millisecond until it is killed.
// Under the name "setsid", it first forks a grandchild in its own session, which writes
// too and ignores SIGTERM.
func writer(args []string) {
	path, name := args[0], args[1]
	if len(args) > 2 && args[2] == "setsid" {
		signal.Ignore(syscall.SIGTERM) // the grandchild inherits it
		child := exec.Command(os.Args[0], writerRole, path, name)
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			panic(err)
		}
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	for range time.Tick(time.Millisecond) {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			panic(err)
		}
		if _, err := fmt.Fprintf(file, "%s %d\n", name, now.Nano()); err != nil {
			panic(err)
		}
	}
}

// trials is how often each disaster is tried.
const trials = 20

// TestChildIsDeadBeforeTheNextHolderWrites lets one command hold a lock and another one
// wait for it. It injects a fault into the first, and compares the last write of the
// first with the first write of the second.
func TestChildIsDeadBeforeTheNextHolderWrites(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 3)
	// Servers tell their clients where they are, which would lead around the proxy:
	// this one says it is where nobody listens.
	alone := startCluster(t, 1, "--advertise", "127.0.0.1:1")
	if err := dial(t, conclave.Config{Servers: alone.Addresses()}).Ready(within(t)); err != nil {
		t.Fatal(err)
	}
	for _, disaster := range []struct {
		name   string
		child  []string
		cut    bool // the way to the server, which is then a single one
		strike func(*testing.T, *exec.Cmd)
	}{
		{name: "connection cut", cut: true},
		{name: "wrapper killed", strike: send(syscall.SIGKILL)},
		{name: "wrapper stopped", strike: send(syscall.SIGSTOP)},
		{name: "grandchild in a session of its own", child: []string{"setsid"}, strike: send(syscall.SIGKILL)},
		{name: "everything named conclave killed", child: []string{"setsid"}, strike: killByName},
	} {
		t.Run(disaster.name, func(t *testing.T) {
			t.Parallel()
			// Some at a time: each writes every millisecond.
			slots := make(chan struct{}, 3)
			for i := range trials {
				t.Run(fmt.Sprint(i+1), func(t *testing.T) {
					t.Parallel()
					slots <- struct{}{}
					defer func() { <-slots }()
					trial := &trial{child: disaster.child, strike: disaster.strike, servers: cluster.Addresses(), direct: cluster}
					if disaster.cut {
						trial.cutting(t, alone)
					}
					trial.run(t, fmt.Sprintf("guard-%s-%d", disaster.name, i))
				})
			}
		})
	}
}

func send(signal syscall.Signal) func(*testing.T, *exec.Cmd) {
	return func(t *testing.T, wrapper *exec.Cmd) {
		t.Helper()
		if err := wrapper.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
}

// killByName does what pkill -9 -f conclave does, but only to the wrapper and its
// descendants. The writers have another name.
func killByName(t *testing.T, wrapper *exec.Cmd) {
	t.Helper()
	var named []int
	for _, pid := range append(descendants(wrapper.Process.Pid), wrapper.Process.Pid) {
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); bytes.Contains(line, []byte("conclave")) {
			named = append(named, pid)
		}
	}
	if len(named) < 2 {
		t.Fatalf("processes %v are named conclave, want wrapper and guard at least", named)
	}
	for _, pid := range named {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

// descendants returns the processes that a process and its descendants started.
func descendants(root int) (found []int) {
	parents := map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		stat, _ := os.ReadFile(name) // "pid (name) state ppid ..."
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 2 {
			continue // it has ended
		}
		pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
		parents[pid], _ = strconv.Atoi(fields[1])
	}
	for pid := range parents {
		for p := parents[pid]; p != 0; p = parents[p] {
			if p == root {
				found = append(found, pid)
				break
			}
		}
	}
	return found
}

type trial struct {
	child   []string
	strike  func(*testing.T, *exec.Cmd)
	servers []string // of the first holder
	direct  *local.Cluster
}

// cutting puts a proxy between the first holder and its server. The fault is that the
// proxy drops the connection.
func (tr *trial) cutting(t *testing.T, alone *local.Cluster) {
	p := newProxy(t, alone.Addresses()[0])
	tr.servers, tr.direct = []string{p.address()}, alone
	tr.strike = func(*testing.T, *exec.Cmd) { p.cut() }
}

func (tr *trial) run(t *testing.T, lock string) {
	file := filepath.Join(t.TempDir(), "writes")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// Long enough for a busy machine, on which a renewal may take seconds.
	first := tr.start(t, tr.servers, lock, "6s", file, "first", tr.child...)
	until(t, "the first command writes", func() bool { return writes(t, file, "first") > 20 })
	// Its own session must not be what ends the trial on a busy machine.
	tr.start(t, tr.direct.Addresses(), lock, "20s", file, "second")
	tr.strike(t, first)
	defer tr.explain(t, lock)
	until(t, "the second command writes", func() bool { return writes(t, file, "second") > 20 })

	last, next := tr.edges(t, file)
	if last >= next {
		t.Fatalf("the first command wrote %v after the second had begun to", time.Duration(last-next))
	}
	t.Logf("dead %v before the next holder's first write", time.Duration(next-last))
}

// explain tells after a failure who holds the lock and who waits.
func (tr *trial) explain(t *testing.T, lock string) {
	if !t.Failed() {
		return
	}
	for _, args := range [][]string{{"locks", lock}, {"sessions"}} {
		output, err := exec.Command(binary, append(args, "--json", "--servers", strings.Join(tr.direct.Addresses(), ","))...).CombinedOutput()
		t.Logf("conclave %v: %v\n%s", args, err, output)
	}
}

// start runs a writer under the lock. Its remaining processes are killed when the trial
// ends.
func (tr *trial) start(t *testing.T, servers []string, lock, ttl, file, name string, child ...string) *exec.Cmd {
	t.Helper()
	args := []string{"lock", lock, "--servers", strings.Join(servers, ","), "--ttl", ttl, "--grace", "200ms", "--", os.Args[0], writerRole, file, name}
	cmd := exec.Command(binary, append(args, child...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the wrapper of the %s command said: %s", name, said.String())
		}
	})
	return cmd
}

func writes(t *testing.T, file, name string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), name)
}

// edges returns the time of the last write of the first command and that of
// the first write of the second.
func (tr *trial) edges(t *testing.T, file string) (last, next int64) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, at, _ := strings.Cut(strings.TrimSpace(line), " ")
		when, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		switch {
		case name == "first":
			last = max(last, when)
		case next == 0 || when < next:
			next = when
		}
	}
	return last, next
}

// proxy passes TCP connections on until it is cut.
type proxy struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	conns    []net.Conn
	severed  bool
	copying  sync.WaitGroup
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: target}
	p.copying.Go(p.accept)
	t.Cleanup(func() {
		p.cut()
		p.copying.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.target)
		if err != nil {
			in.Close()
			continue
		}
		p.join(in, out)
	}
}

func (p *proxy) join(in, out net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, in, out)
	if p.severed {
		in.Close()
		out.Close()
		return
	}
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // it ends with an error when cut
		to.Close()
		from.Close()
	}
	p.copying.Go(func() { pass(out, in) })
	p.copying.Go(func() { pass(in, out) })
}

// cut ends all connections and takes no more.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.severed = true
	p.listener.Close()
	for _, c := range p.conns {
		c.Close()
	}
}

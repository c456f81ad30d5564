//go:build linux

package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/local"
)

const (
	// names is the number of locks, and crew the number of clients of this process that
	// contend for them.
	names = 3
	crew  = 6
	// insideRole makes this binary what `conclave lock` runs: inside DIR NAME.
	insideRole = "inside"
)

// load has clients of both releases that contend for locks, and clients that keep one
// lock all the time. The Go client is that of this tree; the other clients belong to the
// binaries.
//
// The holder of a lock creates a directory with the name of the lock, which must not
// exist, and removes it before it releases. Beside it stands the last fence. So a judge
// is needed in no process: whoever finds the promise broken writes it down.
type load struct {
	dir     string
	servers []string
	entries atomic.Int64
	stop    context.CancelFunc
	working sync.WaitGroup

	keeper *conclave.Client
	kept   *conclave.Lock
	clis   []*keeperProcess
}

// keeperProcess is `conclave lock NAME -- cat`, which holds until its input ends.
type keeperProcess struct {
	cmd   *exec.Cmd
	input io.Closer
	said  *strings.Builder
}

func (p *pair) startLoad(t *testing.T, cluster *local.Cluster, dir string) *load {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &load{dir: dir, servers: cluster.Addresses(), stop: stop}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.stop()
		l.working.Wait()
	})
	l.keeper = dial(t, conclave.Config{Servers: l.servers})
	var err error
	if l.kept, err = l.keeper.Lock(within(t), "kept"); err != nil {
		t.Fatal(err)
	}
	for _, binary := range p.age {
		l.clis = append(l.clis, l.keep(t, binary))
		l.working.Go(func() { l.call(ctx, binary) })
	}
	for range crew {
		client := dial(t, conclave.Config{Servers: l.servers})
		l.working.Go(func() { l.contend(ctx, client) })
	}
	return l
}

// keep starts a binary's own client, which holds a lock all the time.
func (l *load) keep(t *testing.T, binary string) *keeperProcess {
	t.Helper()
	p := &keeperProcess{said: new(strings.Builder)}
	p.cmd = exec.Command(binary, "lock", "kept-by-"+filepath.Base(binary), "--servers", strings.Join(l.servers, ","), "--", "cat")
	p.cmd.Stderr = p.said
	local.Prepare(p.cmd)
	var err error
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// call has a binary's own client take one lock after the other.
func (l *load) call(ctx context.Context, binary string) {
	for ctx.Err() == nil {
		name := fmt.Sprint("lock-", rand.IntN(names))
		cmd := exec.Command(binary, "lock", name, "--servers", strings.Join(l.servers, ","), "--", os.Args[0], insideRole, l.dir)
		local.Prepare(cmd)
		if said, err := cmd.CombinedOutput(); err != nil {
			l.fail("lost", "%s lock %s: %v: %s", filepath.Base(binary), name, err, said)
			return
		}
		l.entries.Add(1)
	}
}

// contend has a client of this process take one lock after the other.
func (l *load) contend(ctx context.Context, client *conclave.Client) {
	for ctx.Err() == nil {
		name := fmt.Sprint("lock-", rand.IntN(names))
		held, err := client.Lock(ctx, name)
		switch {
		case ctx.Err() != nil && err != nil:
			return
		case err != nil:
			l.fail("lost", "%s: %v", name, err)
			return
		}
		fence, err := held.Fence()
		if err == nil {
			stay(l.dir, name, fence)
			l.entries.Add(1)
		}
		if err = errors.Join(err, held.Unlock(context.Background())); err != nil {
			l.fail("lost", "%s: fence %d: %v", name, fence, err)
		}
	}
}

// inside is what `conclave lock` runs.
func inside(args []string) int {
	fence, err := strconv.ParseUint(os.Getenv("CONCLAVE_FENCE"), 10, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	stay(args[0], os.Getenv("CONCLAVE_RESOURCE"), fence)
	return 0
}

// stay holds a lock for a few milliseconds. It checks that no other client holds it, and
// that fences grow.
func stay(dir, name string, fence uint64) {
	place, newest := filepath.Join(dir, name), filepath.Join(dir, name+".fence")
	if err := os.Mkdir(place, 0o700); err != nil {
		complain(dir, "overlap", "%s: fence %d: %v", name, fence, err)
		return
	}
	if text, err := os.ReadFile(newest); err == nil {
		if before, _ := strconv.ParseUint(string(text), 10, 64); fence <= before {
			complain(dir, "fence", "%s: %d after %d", name, fence, before)
		}
	}
	if err := os.WriteFile(newest, strconv.AppendUint(nil, fence, 10), 0o600); err != nil {
		complain(dir, "fence", "%s: %v", name, err)
	}
	<-time.After(time.Duration(1+rand.IntN(5)) * time.Millisecond)
	if err := os.Remove(place); err != nil {
		complain(dir, "overlap", "%s: fence %d: %v", name, fence, err)
	}
}

func (l *load) fail(kind, format string, args ...any) { complain(l.dir, kind, format, args...) }

// complain writes down, in one step, that a promise is broken.
func complain(dir, kind, format string, args ...any) {
	file, err := os.OpenFile(filepath.Join(dir, "problems"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	fmt.Fprintf(file, "%s %s\n", kind, strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "))
}

// goesOn waits until locks are granted again after something happened.
func (l *load) goesOn(t *testing.T) {
	t.Helper()
	before := l.entries.Load()
	until(t, "locks are granted", func() bool { return l.entries.Load() > before+30 })
}

// end ends all clients, and reports what was lost and broken.
func (l *load) end(t *testing.T) {
	t.Helper()
	l.stop()
	l.working.Wait()
	if err := l.kept.Unlock(within(t)); err != nil {
		l.fail("lost", "kept: %v", err)
	}
	for _, p := range l.clis {
		if err := errors.Join(p.input.Close(), p.cmd.Wait()); err != nil {
			l.fail("lost", "%q: %v: %s", p.cmd.Args, err, p.said)
		}
	}
	text, err := os.ReadFile(filepath.Join(l.dir, "problems"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	problems := strings.Split(string(text), "\n")
	count := func(kind string) int {
		return len(slices.DeleteFunc(slices.Clone(problems), func(line string) bool { return !strings.HasPrefix(line, kind+" ") }))
	}
	if len(text) > 0 {
		t.Errorf("broken promises:\n%s", text)
	}
	t.Logf("%d entries: %d overlaps, %d fence regressions, %d lost sessions", l.entries.Load(), count("overlap"), count("fence"), count("lost"))
}

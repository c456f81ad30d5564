package nemesis

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/kit/boottime"
	"github.com/conclave-io/conclave/internal/test/mutation"
	"github.com/conclave-io/conclave/internal/test/vopr/mutants"
)

// clockVariable is the environment variable with the path of a server's clock file. The file has the
// time, in ns, for which the clock of the server has stood still.
const clockVariable = "CONCLAVE_TEST_CLOCK"

func clockFile(dir string, id int) string { return filepath.Join(dir, fmt.Sprint("clock-", id)) }

// settableClock makes the clock of leases stand still when a test says so. A virtual machine that is
// stopped and continued has such a clock. Wall clock and Go's timers go on.
var settableClock = []mutation.Edit{{
	File: "internal/kit/boottime/boottime_linux.go",
	Old:  "func Now() Time { return boot.now() }",
	New: `func Now() Time { return boot.now() - Time(atomic.LoadInt64(stood)) }

var stood = func() *int64 {
	name, _ := syscall.Getenv("` + clockVariable + `")
	file, err := syscall.Open(name, syscall.O_RDONLY, 0)
	if err != nil {
		panic(err)
	}
	text, err := syscall.Mmap(file, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return (*int64)(unsafe.Pointer(&text[0]))
}()`,
}}

// trustsItsClock is the mistake that a clock that stands still turns into two holders.
const trustsItsClock = "home-answers-at-once"

// TestPausedHomes stops a home for longer than its lease, cuts it off from the other servers, and lets
// it continue: with the right time, and with a clock that stood still, so that the home takes its lease
// for valid. Others hold the locks that were granted at it before. It must grant none of them, and
// take part again once it hears the others. With LONG, it makes PAUSES (20) pauses of each kind. Then it
// runs a server that trusts its clock, which must fail.
func TestPausedHomes(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("takes minutes; set LONG=1")
	}
	pauses := 20
	fmt.Sscan(os.Getenv("PAUSES"), &pauses)
	noteFigures(t, runNemesis(t, plan{Pauses: pauses}, settableClock...))

	i := slices.IndexFunc(mutants.All, func(m mutants.Mutant) bool { return m.Name == trustsItsClock })
	if i < 0 {
		t.Fatalf("mutant %s is missing in internal/test/vopr/mutants", trustsItsClock)
	}
	edits := settableClock
	for _, edit := range mutants.All[i].Edits {
		edits = append(edits, mutation.Edit(edit))
	}
	dir := t.TempDir()
	status, said := runDirector(t, newPlan(t, dir, plan{Pauses: 1}, edits...))
	if status != 1 || !slices.ContainsFunc(said, func(line string) bool { return strings.Contains(line, errTwoHold.Error()) }) {
		t.Errorf("a home that trusts its clock passes: status %d", status)
		showSaid(t, dir)
	}
}

var errTwoHold = errors.New("two clients hold the lock")

// pauseRound stops a home until its lease has expired and others hold its locks. In every second round
// the clock of the home stands still meanwhile.
func (h *homes) pauseRound(ctx context.Context, number int) (err error) {
	kind, victim := "a home stands still", number/2%servers+1
	if number%2 == 0 {
		kind = "a home and its clock stand still"
	}
	clients, closeAll, err := h.dialHomes(ctx)
	if err != nil {
		return err
	}
	defer closeAll()
	before, other := clients[victim], clients[others(victim)[0]]
	fences := make(map[string]uint64)
	for _, algorithm := range guarding { // so that the home has the tokens
		name := fmt.Sprint(algorithm, "/", number)
		if fences[name], err = enter(ctx, before, name); err != nil {
			return err
		}
	}
	lost, err := before.Lock(ctx, fmt.Sprint("raymond/held-", number))
	if err != nil {
		return err
	}
	fences[lost.Name()], err = lost.Fence()
	if err != nil {
		return err
	}

	began := boottime.Now()
	if err := h.stop(ctx, victim); err != nil {
		return err
	}
	stopped := boottime.Now()
	if err := h.cutAll(isolated(victim)); err != nil {
		return err
	}
	o := &owner{held: make(map[string]*conclave.Lock)}
	for name, fence := range fences {
		l, err := other.Lock(ctx, name)
		if err != nil {
			return err
		}
		h.took[kind] = append(h.took[kind], time.Duration(boottime.Now().Sub(began)))
		if later, err := l.Fence(); err != nil || later <= fence {
			return fmt.Errorf("%s: %s: fence %d after %d: %w", kind, name, later, fence, err)
		}
		o.held[name] = l
	}
	if lost.Context().Err() == nil {
		return fmt.Errorf("%s: %w %s: the client of the home does not know of its loss", kind, errTwoHold, lost.Name())
	}
	if number%2 == 0 {
		if err := h.stand(victim, boottime.Now().Sub(stopped)); err != nil {
			return err
		}
	}
	if err := h.cluster.Signal(victim, syscall.SIGCONT); err != nil {
		return err
	}
	return o.challenged(ctx, h, kind, before, victim)
}

// enter acquires and releases a lock, and returns its fence.
func enter(ctx context.Context, client *conclave.Client, name string) (uint64, error) {
	l, err := client.Lock(ctx, name)
	if err != nil {
		return 0, err
	}
	fence, err := l.Fence()
	return fence, errors.Join(err, l.Unlock(ctx))
}

// stop stops a server, and waits until it has stopped.
func (h *homes) stop(ctx context.Context, id int) error {
	if err := h.cluster.Signal(id, syscall.SIGSTOP); err != nil {
		return err
	}
	return until(ctx, func(context.Context) error {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.cluster.PID(id)))
		if err != nil {
			return err
		}
		if _, state, _ := strings.Cut(string(text), ") "); !strings.HasPrefix(state, "T") {
			return fmt.Errorf("server %d is not stopped", id)
		}
		return nil
	})
}

// stand makes the clock of a stopped server stand still for some time more.
func (h *homes) stand(id int, more time.Duration) error {
	file := clockFile(h.dir, id)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY, 0) // the server sees this very file
	if err != nil {
		return err
	}
	_, err = f.Write(binary.NativeEndian.AppendUint64(nil, binary.NativeEndian.Uint64(text)+uint64(more)))
	return errors.Join(err, f.Close())
}

// owner holds locks that others ask for.
type owner struct {
	mu   sync.Mutex
	held map[string]*conclave.Lock
}

// holds reports whether the owner holds a lock.
func (o *owner) holds(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.held[name] != nil && o.held[name].Context().Err() == nil
}

// release releases all locks.
func (o *owner) release(ctx context.Context) (err error) {
	o.mu.Lock()
	held := o.held
	o.held = nil
	o.mu.Unlock()
	for _, l := range held {
		err = errors.Join(err, l.Unlock(ctx))
	}
	return err
}

// believed is longer than a home can believe that its lease is valid.
const believed = 2500 * time.Millisecond

// challenged lets clients of a home ask for all locks while the owner holds them: the one that was
// there before, and a new one. They must get them after the owner has released them, and not before.
// The home is first cut off from the other servers. The owner keeps its locks until the home takes part.
func (o *owner) challenged(ctx context.Context, h *homes, kind string, before *conclave.Client, victim int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	after, err := conclave.Dial(ctx, conclave.Config{Servers: h.cluster.Addresses(), Home: h.cluster.Addresses()[victim-1]})
	if err != nil {
		return err
	}
	defer after.Close()
	var asking sync.WaitGroup
	for name, l := range o.held {
		fence, err := l.Fence()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, client := range []*conclave.Client{before, after} {
			asking.Go(func() {
				later, err := o.follow(ctx, client, name)
				switch {
				case err != nil:
				case later <= fence:
					err = fmt.Errorf("%s: fence %d after %d", name, later, fence)
				default:
					return
				}
				cancel(fmt.Errorf("%s: %w", kind, err))
			})
		}
	}
	pause(ctx, believed)
	err = h.mendAll(isolated(victim))
	if ctx.Err() == nil {
		err = errors.Join(err, until(ctx, h.open))
	}
	err = errors.Join(err, o.release(context.WithoutCancel(ctx)))
	asking.Wait()
	return errors.Join(context.Cause(ctx), err)
}

// follow acquires and releases a lock after its owner, and returns its fence.
func (o *owner) follow(ctx context.Context, client *conclave.Client, name string) (uint64, error) {
	l, err := client.Lock(ctx, name)
	if err != nil {
		return 0, err
	}
	if o.holds(name) {
		return 0, fmt.Errorf("%w %s", errTwoHold, name)
	}
	fence, err := l.Fence()
	return fence, errors.Join(err, l.Unlock(ctx))
}

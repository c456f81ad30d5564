package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/bench/competitor"
	load "github.com/conclave-io/conclave/internal/cli/bench"
	"github.com/conclave-io/conclave/internal/cli/local"
)

// fault is a signal that the leader receives.
type fault struct {
	name   string
	signal syscall.Signal
}

var faults = []fault{{"SIGKILL", syscall.SIGKILL}, {"SIGSTOP", syscall.SIGSTOP}}

// outage is the effect of one fault on one service, in ms.
type outage struct {
	Service string    `json:"service"`
	Fault   string    `json:"fault"`
	MS      []float64 `json:"ms"`
	// None counts the runs without an entry within the limit. For these runs, MS contains the
	// limit.
	None int `json:"none"`
}

// failover measures how long nobody can acquire a lock after the leader was killed or stopped. The
// time runs from the signal to the return of an acquire that is requested directly afterwards. The
// client was connected before.
func failover(ctx context.Context, b *bench) (section, error) {
	var outages []outage
	for _, name := range b.services {
		if strings.HasPrefix(name, "redis") {
			continue // a single server has no failover
		}
		s, err := b.start(ctx, name)
		if errors.Is(err, competitor.ErrAbsent) {
			continue
		}
		if err != nil {
			return section{}, err
		}
		for _, f := range faults {
			t, err := b.faults(ctx, s, f)
			if err != nil {
				return section{}, errors.Join(fmt.Errorf("%s, %s: %w", name, f.name, err), s.Stop())
			}
			t.Service, t.Fault = name, f.name
			outages = append(outages, t)
		}
		if err := s.Stop(); err != nil {
			return section{}, err
		}
	}
	return section{outageTable("the leader gets", outages), outages}, nil
}

func outageTable(what string, outages []outage) string {
	var rows [][]string
	for _, t := range outages {
		s := spreadOf(t.MS)
		rows = append(rows, []string{t.Service + ", " + what + " " + t.Fault, fmt.Sprint(len(t.MS)), digits(s.Median), digits(s.Least), digits(s.Most), fmt.Sprint(t.None)})
	}
	return table([]string{"", "times", "median, ms", "least, ms", "most, ms", fmt.Sprintf("none within %v", limit)}, rows)
}

func (b *bench) faults(ctx context.Context, s competitor.Service, f fault) (outage, error) {
	var t outage
	for range b.count {
		lockers, closeAll, err := s.Lockers(ctx, load.Uncontended, 1, 1)
		if err != nil {
			return outage{}, err
		}
		took, err := injectFault(ctx, s, f, lockers[0])
		closeAll()
		if err != nil {
			return outage{}, err
		}
		if took >= limit {
			took = limit
			t.None++
		}
		t.MS = append(t.MS, inMS(took))
		fmt.Fprintf(os.Stderr, "  %s: %.0f ms\n", f.name, inMS(took))
	}
	return t, nil
}

func inMS(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// injectFault sends the signal to the leader and returns the time until the next entry. Then it restores
// the service.
func injectFault(ctx context.Context, s competitor.Service, f fault, lock load.Locker) (time.Duration, error) {
	name := fmt.Sprintf("bench-%d", time.Now().UnixNano())
	first := name + "-first"
	leader, err := competitor.Settle(ctx, s)
	if err != nil {
		return 0, err
	}
	if _, err := enter(ctx, lock, first); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := s.Signal(leader, f.signal); err != nil {
		return 0, err
	}
	if f.signal == syscall.SIGKILL {
		s.Reap(leader) // after this, no answer from before the signal can arrive
	}
	entered, failed := enter(ctx, lock, name)
	if ctx.Err() != nil {
		return 0, failed
	}
	if f.signal == syscall.SIGKILL {
		err = s.Restart(leader)
	} else {
		err = s.Signal(leader, syscall.SIGCONT)
	}
	if failed != nil {
		return limit, err
	}
	return entered.Sub(began), err
}

// attempt is the timeout of one try. Without it, the request of a client that is connected to a
// follower of the dead leader would wait until that server gives up.
const attempt = 500 * time.Millisecond

// limit is the maximum time to wait for an entry.
const limit = 30 * time.Second

// enter acquires a lock, returns the time of the entry, and releases the lock. It retries a failed
// acquire, but not a failed release: the session ends soon, and each name is used only once.
func enter(ctx context.Context, lock load.Locker, name string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for i := 0; ; i++ { // a new name each time, because a failed try may still be in the queue
		once, stop := context.WithTimeout(ctx, attempt)
		release, err := lock(once, fmt.Sprint(name, "-", i))
		stop()
		if err == nil {
			entered := time.Now()
			giving, stop := context.WithTimeout(ctx, 10*attempt)
			defer stop()
			_ = release(giving)
			return entered, nil
		}
		if pause(ctx, 2*time.Millisecond) != nil {
			return time.Time{}, fmt.Errorf("no entry within %v: %w", limit, err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// holdCommand is the command that makes this program hold a lock until it is killed. Its arguments
// are a server, a TTL and a name.
const holdCommand = "__hold"

func hold(args []string) {
	err := func() error {
		ttl, err := time.ParseDuration(args[1])
		if err != nil {
			return err
		}
		client, err := conclave.Dial(context.Background(), conclave.Config{Servers: args[:1], TTL: ttl})
		if err != nil {
			return err
		}
		for { // with a short TTL on a busy machine, the lock may expire before the grant arrives
			held, err := client.Lock(context.Background(), args[2])
			if err != nil {
				return err
			}
			if _, err := held.Fence(); err != nil {
				continue
			}
			fmt.Println("held")
			<-held.Context().Done()
		}
	}()
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// shortTTL is the shortest TTL that is allowed.
const shortTTL = conclave.MinTTL

// holderCrash kills a process that holds a lock, and measures when the next waiter enters.
func holderCrash(ctx context.Context, b *bench, c *competitor.Conclave, _ int) (section, error) {
	client, err := conclave.Dial(ctx, c.Config())
	if err != nil {
		return section{}, err
	}
	defer client.Close()
	t := outage{Service: "conclave", Fault: fmt.Sprintf("SIGKILL, TTL %v", shortTTL)}
	for i := 0; len(t.MS) < b.count; i++ {
		if i > 10*b.count {
			return section{}, errors.New("holders lose their locks before they are killed: the machine is too busy")
		}
		ms, err := killHolder(ctx, client, c.Addresses[0], fmt.Sprint("bench-holder-", i))
		if errors.Is(err, errEarly) {
			continue
		}
		if err != nil {
			return section{}, err
		}
		t.MS = append(t.MS, ms)
	}
	return section{outageTable("the holder gets", []outage{t}), t}, nil
}

// errEarly means that the holder lost its lock before it was killed. On a busy machine, a short TTL
// can expire while the holder waits for a processor.
var errEarly = errors.New("the lock was lost before its holder died")

// killHolder kills a holder and returns the time until the next waiter enters, in ms.
func killHolder(ctx context.Context, client *conclave.Client, server, name string) (float64, error) {
	cmd, err := startHolder(ctx, server, name)
	if err != nil {
		return 0, err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	entered := make(chan error, 1)
	go func() {
		held, err := client.Lock(ctx, name)
		if err == nil {
			defer held.Unlock(ctx)
		}
		entered <- err
	}()
	if err := queued(ctx, client, name, entered); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := cmd.Process.Kill(); err != nil {
		return 0, err
	}
	if len(entered) > 0 {
		return 0, errEarly
	}
	err = <-entered
	return inMS(time.Since(began)), err
}

// startHolder starts a process and returns when that process holds the lock.
func startHolder(ctx context.Context, server, name string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, holdCommand, server, shortTTL.String(), name)
	local.Prepare(cmd)
	cmd.Stderr = os.Stderr
	said, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil {
		_ = cmd.Process.Kill()
		return nil, errors.Join(fmt.Errorf("the holder said %q: %w", line, err), cmd.Wait())
	}
	return cmd, nil
}

// queued waits until a client waits for the lock.
func queued(ctx context.Context, client *conclave.Client, name string, entered <-chan error) error {
	for len(entered) == 0 {
		locks, err := client.List(ctx, name)
		if err != nil {
			return err
		}
		for _, l := range locks {
			if l.Name == name && l.QueueLength > 0 {
				return nil
			}
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return errEarly
}

// onCluster returns a measurement on a cluster of its own, which has a leader.
func onCluster(measure func(ctx context.Context, b *bench, c *competitor.Conclave, leader int) (section, error)) func(context.Context, *bench) (section, error) {
	return func(ctx context.Context, b *bench) (section, error) {
		c, leader, err := b.startConclave(ctx)
		if err != nil {
			return section{}, err
		}
		defer c.Stop()
		return measure(ctx, b, c, leader)
	}
}

// startConclave starts a cluster for a measurement of Conclave alone, and waits until it has a
// leader.
func (b *bench) startConclave(ctx context.Context) (c *competitor.Conclave, leader int, err error) {
	s, err := competitor.Start(ctx, "conclave", b.binaries, b.dir)
	if err != nil {
		return nil, 0, err
	}
	if leader, err = competitor.Settle(ctx, s); err != nil {
		return nil, 0, errors.Join(err, s.Stop())
	}
	return s.(*competitor.Conclave), leader, nil
}

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
	load "github.com/conclave-io/conclave/internal/bench"
	"github.com/conclave-io/conclave/internal/local"

	"github.com/conclave-io/conclave/bench/competitor"
)

// fault is what happens to a leader.
type fault struct {
	name   string
	signal syscall.Signal
}

var faults = []fault{{"SIGKILL", syscall.SIGKILL}, {"SIGSTOP", syscall.SIGSTOP}}

// toll is what one fault cost one service, in ms.
type toll struct {
	Service string    `json:"service"`
	Fault   string    `json:"fault"`
	MS      []float64 `json:"ms"`
	// None is how often nobody had entered when the limit was over; that counts
	// with the limit in MS.
	None int `json:"none"`
}

// failover measures how long nobody enters after the leader died or stopped: from
// the signal to the return of an acquire that is asked for right after it, by a
// client that had been served before.
func failover(ctx context.Context, b *bench) (section, error) {
	var tolls []toll
	for _, name := range b.services {
		if strings.HasPrefix(name, "redis") {
			continue // one server: it has nobody to fail over to
		}
		s, err := competitor.Start(ctx, name, b.binaries, b.dir)
		if competitor.Absent(err) {
			fmt.Fprintf(os.Stderr, "  %v: left out\n", err)
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
			tolls = append(tolls, t)
		}
		if err := s.Stop(); err != nil {
			return section{}, err
		}
	}
	return section{tollTable("the leader gets", tolls), tolls}, nil
}

func tollTable(what string, tolls []toll) string {
	var rows [][]string
	for _, t := range tolls {
		s := spreadOf(t.MS)
		rows = append(rows, []string{t.Service + ", " + what + " " + t.Fault, fmt.Sprint(len(t.MS)), digits(s.Median), digits(s.Least), digits(s.Most), fmt.Sprint(t.None)})
	}
	return table([]string{"", "times", "median, ms", "least, ms", "most, ms", fmt.Sprintf("none within %v", limit)}, rows)
}

func (b *bench) faults(ctx context.Context, s competitor.Service, f fault) (toll, error) {
	var t toll
	for range b.count {
		lockers, closeAll, err := s.Lockers(ctx, load.Uncontended, 1, 1)
		if err != nil {
			return toll{}, err
		}
		took, err := strike(ctx, s, f, lockers[0])
		closeAll()
		if err != nil {
			return toll{}, err
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

// strike hits the leader and returns how long there was no entry. Then it heals the
// service.
func strike(ctx context.Context, s competitor.Service, f fault, lock load.Locker) (time.Duration, error) {
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
		s.Reap(leader) // what it still sends would be an answer of before
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

// attempt is how long one try may take. The request of a client that went to a
// follower of the dead leader would else wait for that server to give up.
const attempt = 500 * time.Millisecond

// limit is how long an entry is waited for.
const limit = 30 * time.Second

// enter acquires, tells when it had, and releases. What fails is tried again, but
// for the release: the session ends soon, and no name is used twice.
func enter(ctx context.Context, lock load.Locker, name string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for i := 0; ; i++ { // a try that failed may have left something in its queue
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

// holdCommand makes this program hold a lock until it is killed: its arguments
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
		for { // with a short TTL a busy machine may lose it before it is told
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

// shortTTL is the shortest that there is.
const shortTTL = conclave.MinTTL

// holderCrash kills a process that holds a lock, and measures when the next in the
// queue enters.
func holderCrash(ctx context.Context, b *bench) (section, error) {
	c, _, err := b.startConclave(ctx)
	if err != nil {
		return section{}, err
	}
	defer c.Stop()
	client, err := conclave.Dial(ctx, c.Config())
	if err != nil {
		return section{}, err
	}
	defer client.Close()
	t := toll{Service: "conclave", Fault: fmt.Sprintf("SIGKILL, TTL %v", shortTTL)}
	for i := 0; len(t.MS) < b.count; i++ {
		if i > 10*b.count {
			return section{}, errors.New("holders lose their locks before they are killed: the machine is too busy")
		}
		ms, err := bereave(ctx, client, c.Addresses[0], fmt.Sprint("bench-holder-", i))
		if errors.Is(err, errEarly) {
			continue
		}
		if err != nil {
			return section{}, err
		}
		t.MS = append(t.MS, ms)
	}
	return section{tollTable("the holder gets", []toll{t}), t}, nil
}

// errEarly says that the holder lost its lock while it lived: so short a TTL may
// pass between two turns of a process on a busy machine.
var errEarly = errors.New("the lock was lost before its holder died")

// bereave returns after how many ms the death of a holder let the next one in.
func bereave(ctx context.Context, client *conclave.Client, server, name string) (float64, error) {
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
	select {
	case <-entered:
		return 0, errEarly
	default:
	}
	err = <-entered
	return float64(time.Since(began).Microseconds()) / 1e3, err
}

// startHolder starts a process that has the lock when this returns.
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

// queued waits until somebody waits for a lock.
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

// startConclave starts a cluster for a measurement that knows no other service, and
// waits until it has a leader.
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

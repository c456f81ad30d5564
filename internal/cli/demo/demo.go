// Package demo shows in half a minute what Conclave promises: programs take
// turns under a lock while their servers are killed. Everything is real:
// processes, disks, sockets and SIGKILL.
package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/local"
	"github.com/conclave-io/conclave/internal/service/version"
)

// WorkerCommand is the hidden command that runs a worker.
const WorkerCommand = "__demo-worker"

const workers = 8

// Config configures the demo.
type Config struct {
	// Binary is the conclave binary.
	Binary string
	// Dir is the directory for the servers' data and the workers' file.
	Dir string
	// Progress receives progress messages for people.
	Progress io.Writer
	// Membership selects the other scenario: every server is restarted in turn, one is
	// replaced, and the leader is removed.
	Membership bool
	// Algorithm is the algorithm that guards the lock; if empty, agreement does.
	Algorithm string
}

// stage is the state of a run.
type stage struct {
	Config
	cluster *local.Cluster
	client  *conclave.Client // only to ask who leads
	path    string           // of the workers' file
	began   time.Time
	workers [workers]*exec.Cmd
	inside  [workers]chan string // messages of each worker
	reaped  sync.WaitGroup
	kills   []kill
	changes changes
}

// Run runs the demo and returns its report. After an error there is none.
func Run(ctx context.Context, cfg Config) (Report, error) {
	s := &stage{Config: cfg, path: filepath.Join(cfg.Dir, "entries"), began: time.Now()}
	defer s.clear()
	play := s.play
	if cfg.Membership {
		play = s.playMembership
	}
	if err := play(ctx); err != nil {
		return Report{}, err
	}
	file, err := os.Open(s.path)
	if err != nil {
		return Report{}, err
	}
	defer file.Close()
	records, err := readRecords(file)
	if err != nil {
		return Report{}, err
	}
	report := judge(records, s.kills)
	if cfg.Membership {
		report.changes = &s.changes
	}
	return report, nil
}

func (s *stage) play(ctx context.Context) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	if err := s.watch(ctx, 3*time.Second); err != nil {
		return err
	}
	for range 3 {
		if err := s.killLeader(ctx); err != nil {
			return err
		}
	}
	if err := s.killHolder(ctx); err != nil {
		return err
	}
	if err := s.watch(ctx, ttl+2*time.Second); err != nil {
		return err
	}
	return s.close()
}

func (s *stage) serve(ctx context.Context) error {
	s.say("starting 3 servers, each a process with its data on disk under %s", s.Dir)
	var err error
	if s.cluster, err = local.Start(local.Config{Binary: s.Binary, Dir: s.Dir}); err != nil {
		return err
	}
	ready, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	s.client, err = conclave.Dial(ready, conclave.Config{Servers: s.cluster.Addresses(), Program: "demo"})
	if err != nil {
		return errors.Join(err, s.cluster.Died())
	}
	return nil
}

// open starts the servers, then the workers.
func (s *stage) open(ctx context.Context) error {
	if err := s.serve(ctx); err != nil {
		return err
	}
	if s.Algorithm != "" {
		if err := s.guard(ctx); err != nil {
			return err
		}
	}
	if err := os.WriteFile(s.path, nil, 0o600); err != nil {
		return err
	}
	for i := range s.workers {
		if err := s.startWorker(i); err != nil {
			return err
		}
	}
	s.say("%d workers, each a process, contend for the lock %q", workers, Lock)
	return nil
}

// guard makes the algorithm guard the lock, and waits until all servers take part.
func (s *stage) guard(ctx context.Context) error {
	if err := s.cluster.Raise(ctx, s.client, version.Guarded); err != nil {
		return err
	}
	use := admin.Use{Algorithm: s.Algorithm}
	if s.Algorithm == "k-ricart-agrawala" {
		use.Options = "k=1" // more would be inside together
	}
	if err := admin.New(s.client).SetGuard(ctx, Lock, use); err != nil {
		return err
	}
	err := s.cluster.Await(ctx, 15*time.Second, s.Algorithm+" does not guard the lock", func(ctx context.Context) (bool, error) {
		v, err := admin.New(s.client).View(ctx)
		return err == nil && len(v.Members) == s.cluster.Servers() && v.Guards[0].Change == nil, err
	})
	if err == nil {
		s.say("%s guards the lock between the servers: a hold is lost with the server that its worker is attached to", s.Algorithm)
	}
	return err
}

func (s *stage) startWorker(i int) error {
	cmd := exec.Command(s.Binary, WorkerCommand, "--servers", strings.Join(s.cluster.Addresses(), ","),
		"--number", strconv.Itoa(i+1), "--file", s.path)
	cmd.Stderr = os.Stderr
	says, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	local.Prepare(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("worker %d does not start: %w", i+1, err)
	}
	s.workers[i] = cmd
	s.inside[i] = make(chan string, 1)
	s.reaped.Go(func() {
		defer close(s.inside[i])
		lines := bufio.NewScanner(says)
		for lines.Scan() {
			s.inside[i] <- lines.Text()
		}
	})
	return nil
}

// watch lets the run continue for a while and reports its progress.
func (s *stage) watch(ctx context.Context, d time.Duration) error {
	end := time.After(d)
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-end:
			return s.cluster.Died()
		case <-second.C:
			n, err := s.entries()
			if err != nil {
				return err
			}
			s.say("%d entries", n)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *stage) entries() (int, error) {
	text, err := os.ReadFile(s.path)
	return strings.Count(string(text), enter), err
}

func (s *stage) killLeader(ctx context.Context) error {
	leader, err := s.leader(ctx)
	if err != nil {
		return err
	}
	s.say("SIGKILL to server %d, the leader", leader)
	k := kill{sent: monotonic()}
	if err := s.cluster.Kill(leader); err != nil {
		return err
	}
	k.reaped = monotonic()
	s.kills = append(s.kills, k)
	if err := s.watch(ctx, 2*time.Second); err != nil {
		return err
	}
	s.say("server %d starts again", leader)
	if err := s.cluster.Restart(leader); err != nil {
		return err
	}
	return s.watch(ctx, 2500*time.Millisecond)
}

func (s *stage) leader(ctx context.Context) (leader int, err error) {
	err = s.cluster.Await(ctx, 10*time.Second, "no leader is known", func(ctx context.Context) (bool, error) {
		status, err := admin.New(s.client).Status(ctx)
		leader = int(status.Leader)
		return leader != 0, err
	})
	return leader, err
}

// killHolder kills a worker while it holds the lock.
func (s *stage) killHolder(ctx context.Context) error {
	const victim = 0
	cmd := s.workers[victim]
	if err := cmd.Process.Signal(clingSignal); err != nil {
		return err
	}
	select {
	case says := <-s.inside[victim]:
		if says != "inside" {
			return fmt.Errorf("worker %d ended instead of staying inside", victim+1)
		}
	case <-time.After(time.Minute): // under majority no wait is bounded: a worker may wait for more than 10 s
		return fmt.Errorf("worker %d did not get the lock within a minute", victim+1)
	case <-ctx.Done():
		return ctx.Err()
	}
	s.say("SIGKILL to worker %d, which holds the lock; its session lives on for up to %v", victim+1, ttl)
	k := kill{worker: victim + 1, sent: monotonic()}
	if err := cmd.Process.Kill(); err != nil {
		return err
	}
	for range s.inside[victim] {
	}
	_ = cmd.Wait() // the error reports the kill
	k.reaped = monotonic()
	s.workers[victim] = nil
	s.kills = append(s.kills, k)
	return nil
}

// close lets the workers finish their turn.
func (s *stage) close() error {
	var problems []error
	for _, cmd := range s.workers {
		if cmd != nil {
			problems = append(problems, cmd.Process.Signal(syscall.SIGTERM))
		}
	}
	s.reaped.Wait()
	for i, cmd := range s.workers {
		if cmd == nil {
			continue
		}
		if err := cmd.Wait(); err != nil {
			problems = append(problems, fmt.Errorf("worker %d: %w", i+1, err))
		}
		s.workers[i] = nil
	}
	return errors.Join(problems...)
}

// clear ends everything that still runs.
func (s *stage) clear() {
	for _, cmd := range s.workers {
		if cmd != nil {
			_ = cmd.Process.Kill()
		}
	}
	s.reaped.Wait()
	for _, cmd := range s.workers {
		if cmd != nil {
			_ = cmd.Wait()
		}
	}
	if s.client != nil {
		s.client.Close()
	}
	if s.cluster != nil {
		if err := s.cluster.Stop(); err != nil {
			s.say("%v", err)
		}
	}
}

// say prints a progress message with the time.
func (s *stage) say(format string, args ...any) {
	fmt.Fprintf(s.Progress, "%5.1f s  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

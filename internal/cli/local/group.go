package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
)

// Group has the processes of one service, with ids from 1 up. They can be killed, stopped and
// started again. They end when this process ends, for any reason.
type Group struct {
	mu      sync.Mutex
	running []*process // by id, from index 0; nil where one is down
}

type process struct {
	cmd  *exec.Cmd
	log  Log
	done chan struct{} // closed once it is reaped
	err  error
}

// Run starts a process that is down, and appends its output to a file.
func (g *Group) Run(id int, file string, cmd *exec.Cmd) error {
	said := NewLog(file)
	log, err := said.Open()
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	cmd.Stdout, cmd.Stderr = log, log
	Prepare(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("server %d does not start: %w", id, err)
	}
	p := &process{cmd: cmd, log: said, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.running) < id {
		g.running = append(g.running, nil)
	}
	g.running[id-1] = p
	return nil
}

// all returns the processes by id, from index 0.
func (g *Group) all() []*process {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.running)
}

// process returns the process of a server, or nil if it is not running.
func (g *Group) process(id int) *process {
	g.mu.Lock()
	defer g.mu.Unlock()
	if id > len(g.running) {
		return nil
	}
	return g.running[id-1]
}

// PID returns the process of a server, or 0 if it is not running.
func (g *Group) PID(id int) int {
	if p := g.process(id); p != nil {
		return p.cmd.Process.Pid
	}
	return 0
}

// PIDs returns the processes that are running.
func (g *Group) PIDs() (pids []int) {
	for _, p := range g.all() {
		if p != nil {
			pids = append(pids, p.cmd.Process.Pid)
		}
	}
	return pids
}

// Signal sends a signal to a server.
func (g *Group) Signal(id int, signal os.Signal) error {
	p := g.process(id)
	if p == nil {
		return fmt.Errorf("server %d is not running", id)
	}
	return p.cmd.Process.Signal(signal)
}

// Kill kills a server with SIGKILL and waits until it is reaped.
func (g *Group) Kill(id int) error {
	if err := g.Signal(id, syscall.SIGKILL); err != nil {
		return err
	}
	g.Reap(id)
	return nil
}

// End tells a server to stop, and waits until it is reaped.
func (g *Group) End(id int) error {
	if err := g.Signal(id, syscall.SIGTERM); err != nil {
		return err
	}
	return g.Ended(id)
}

// Ended waits until a server has ended.
func (g *Group) Ended(id int) error {
	select {
	case <-g.process(id).done:
		g.Reap(id)
		return nil
	case <-time.After(stopTimeout):
		return fmt.Errorf("server %d has not ended after %v", id, stopTimeout)
	}
}

// Reap waits, without a limit, until a server has ended that was running.
func (g *Group) Reap(id int) {
	<-g.process(id).done
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running[id-1] = nil
}

// Died returns an error with the last line that a server printed if one has
// ended that nobody ended.
func (g *Group) Died() error {
	for i, p := range g.all() {
		if p == nil {
			continue
		}
		select {
		case <-p.done:
			return fmt.Errorf("server %d ended (%v); it said: %s", i+1, p.err, p.log.LastLine())
		default:
		}
	}
	return nil
}

// stopTimeout is how long a server may take to stop: 10 s for itself, 2 s for the calls of its clients, and some
// slack.
const stopTimeout = 15 * time.Second

// Stop ends all servers, those that do not end by themselves with SIGKILL.
func (g *Group) Stop() error {
	var problems []error
	running := g.all()
	for _, p := range running {
		if p != nil {
			_ = p.cmd.Process.Signal(syscall.SIGTERM)
			_ = p.cmd.Process.Signal(wake)
		}
	}
	end := time.After(stopTimeout)
	for i, p := range running {
		if p == nil {
			continue
		}
		select {
		case <-p.done:
		case <-end:
			problems = append(problems, fmt.Errorf("server %d did not end within %v and was killed", i+1, stopTimeout))
			_ = p.cmd.Process.Kill()
		}
		g.Reap(i + 1)
	}
	return errors.Join(problems...)
}

// Await looks again and again until look returns true. After limit it fails: the error says what is
// not so, why the last look failed, and why a server ended, if one did.
func (g *Group) Await(ctx context.Context, limit time.Duration, not string, look func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		done, err := look(ctx)
		if done && err == nil {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s after %v: %w", not, limit, errors.Join(err, ctx.Err(), g.Died()))
		}
	}
}

// Raise waits until the servers of a cluster have met, and brings the cluster to the level that is
// needed or the highest that all read, if that is above. It rises by itself only if no
// program uses the cluster before.
func (g *Group) Raise(ctx context.Context, client *conclave.Client, needed uint32) error {
	return g.Await(ctx, 30*time.Second, fmt.Sprintf("the level of the cluster is not %d", needed), func(ctx context.Context) (bool, error) {
		u, err := admin.New(client).Upgrade(ctx)
		switch {
		case err != nil || len(u.Obstacles) > 0:
		case u.Target > u.Level:
			_, err = admin.New(client).RaiseLevel(ctx, u.Target)
		case u.Level >= needed:
			return true, nil
		}
		return false, errors.Join(err, fmt.Errorf("it is %d", u.Level))
	})
}

package competitor

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/conclave-io/conclave/internal/local"
)

// group is the set of processes of one service. They can be killed, stopped and started again. They
// end when this process ends, for any reason.
type group struct {
	dir      string
	commands [][]string // by server, from index 0

	mu      sync.Mutex
	running []*process // nil where a server is down
}

type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process was reaped
}

// startGroup starts all commands. Their output is appended to files in dir.
func startGroup(dir string, commands ...[]string) (*group, error) {
	g := &group{dir: dir, commands: commands, running: make([]*process, len(commands))}
	for id := 1; id <= len(commands); id++ {
		if err := g.Restart(id); err != nil {
			return nil, errors.Join(err, g.Stop())
		}
	}
	return g, nil
}

// Servers returns the number of processes of the service.
func (g *group) Servers() int { return len(g.commands) }

func (g *group) logFile(id int) string { return filepath.Join(g.dir, fmt.Sprintf("output-%d.log", id)) }

// Restart starts a server that is down.
func (g *group) Restart(id int) error {
	log, err := os.OpenFile(g.logFile(id), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own descriptor
	argv := g.commands[id-1]
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = g.dir, log, log
	local.Prepare(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running[id-1] = p
	return nil
}

func (g *group) process(id int) *process {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running[id-1]
}

// PIDs returns the ids of the running processes.
func (g *group) PIDs() []int {
	var pids []int
	for id := 1; id <= g.Servers(); id++ {
		if p := g.process(id); p != nil {
			pids = append(pids, p.cmd.Process.Pid)
		}
	}
	return pids
}

// Signal sends a signal to a server.
func (g *group) Signal(id int, signal syscall.Signal) error {
	p := g.process(id)
	if p == nil {
		return fmt.Errorf("server %d is not running", id)
	}
	return p.cmd.Process.Signal(signal)
}

// Reap waits until a server that received a signal has ended.
func (g *group) Reap(id int) {
	if p := g.process(id); p != nil {
		<-p.done
		g.mu.Lock()
		defer g.mu.Unlock()
		g.running[id-1] = nil
	}
}

// Died returns an error if a server ended unexpectedly. The error has the end of its output.
func (g *group) Died() error {
	for id := 1; id <= g.Servers(); id++ {
		p := g.process(id)
		if p == nil {
			continue
		}
		select {
		case <-p.done:
			output, _ := os.ReadFile(g.logFile(id))
			lines := bytes.Split(bytes.TrimSpace(output), []byte("\n"))
			return fmt.Errorf("%s ended; it said: %s", filepath.Base(g.commands[id-1][0]), lines[len(lines)-1])
		default:
		}
	}
	return nil
}

// Stop ends all servers. It kills those that do not end in time.
func (g *group) Stop() error {
	for id := 1; id <= g.Servers(); id++ {
		if g.process(id) != nil {
			_ = g.Signal(id, syscall.SIGTERM)
			_ = g.Signal(id, syscall.SIGCONT)
		}
	}
	timeout := time.After(10 * time.Second)
	for id := 1; id <= g.Servers(); id++ {
		p := g.process(id)
		if p == nil {
			continue
		}
		select {
		case <-p.done:
		case <-timeout:
			_ = p.cmd.Process.Kill()
		}
		g.Reap(id)
	}
	return nil
}

// freeAddresses returns unused addresses on this machine.
func freeAddresses(n int) ([]string, error) {
	var addresses []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // close all at the end, so that no address occurs twice
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}

func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/internal/cli/local"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

const (
	// devTimeout bounds how long the servers take to become ready, and to stop.
	devTimeout = 15 * time.Second
	// revival is the pause before a server that died is restarted. It is long enough to observe
	// its absence.
	revival = time.Second
)

// devCluster is a cluster of server processes on this machine.
type devCluster struct {
	app     *ui.App
	binary  string
	dir     string
	clients []string // addresses by server, from index 0
	peers   []string
	logs    []local.Log // of the current run of each server, from index 0

	ready chan struct{} // closed once all servers have been ready
	tasks sync.WaitGroup
}

// NewDev returns the command dev.
func NewDev(a *ui.App) *cobra.Command {
	var (
		servers, port int
		dir           string
	)
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a cluster on this machine, for trying things out",
		Long: `The command starts several server processes and prints a line that sets CONCLAVE_SERVERS for
other commands. It runs until Ctrl-C. If a server dies, dev restarts it after one second, so that
you can see the effect of kill -9.

Server N accepts clients on port --port + N - 1, and other servers on a port that is 100 higher.`,
		Example: `  conclave dev
  conclave dev --servers 5 --data ./cluster
  conclave dev --port 8400`,
		Args: ui.NoArguments,
		RunE: func(*cobra.Command, []string) error { return runDev(a, servers, port, dir) },
	}
	cmd.Flags().IntVar(&servers, "servers", 3, "how many servers, 1 to 9")
	cmd.Flags().StringVar(&dir, "data", "", "keep data and logs in this `directory`, and continue with its content (default: a temporary one)")
	cmd.Flags().IntVar(&port, "port", 7400, "port for clients of the first server")
	return cmd
}

func runDev(a *ui.App, servers, port int, dir string) error {
	if servers < 1 || servers > 9 {
		return fmt.Errorf("--servers: %d: must be between 1 and 9", servers)
	}
	if port < 1 || port > lastDevPort {
		return fmt.Errorf("--port: %d: must be between 1 and %d, because the servers also use higher ports", port, lastDevPort)
	}
	if err := devFree(servers, port); err != nil {
		return err
	}
	return ui.OnThisMachine(dir, "conclave-dev-", func(ctx context.Context, binary, dir string) error {
		c := &devCluster{app: a, binary: binary, dir: dir, ready: make(chan struct{})}
		c.clients, c.peers = devAddresses(servers, port)
		return c.run(ctx)
	})
}

// run runs all servers until ctx ends, or one cannot be started.
func (c *devCluster) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer c.tasks.Wait()
	defer cancel(nil)
	for id := 1; id <= len(c.clients); id++ {
		c.logs = append(c.logs, local.NewLog(c.logFile(id)))
	}
	for id := 1; id <= len(c.clients); id++ {
		c.tasks.Go(func() {
			if err := c.keep(ctx, id); err != nil {
				cancel(err)
			}
		})
	}
	if err := c.awaitReady(ctx); err != nil {
		cancel(err)
		return err
	}
	close(c.ready)
	c.app.Say("%d servers are up; data and logs are in %s; press Ctrl-C to stop them", len(c.clients), c.dir)
	c.app.Say("open http://%s/ in a browser to see them", c.clients[0])
	fmt.Fprintf(c.app.Stdout, "export CONCLAVE_SERVERS=%s\n", strings.Join(c.clients, ","))
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	c.app.Say("stopping")
	return nil
}

func (c *devCluster) awaitReady(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, devTimeout)
	defer cancel()
	for id, address := range c.clients {
		for !c.started(id+1) || !ready(limit, address) {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-limit.Done():
				if ctx.Err() == nil {
					return fmt.Errorf("server %d: not ready after %v; see its log %s", id+1, devTimeout, c.logFile(id+1))
				}
				if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
					return err
				}
				return errors.New("interrupted before the servers were ready")
			}
		}
	}
	return nil
}

// started reports whether a server has printed that it takes clients. An answer before that comes
// from another process.
func (c *devCluster) started(id int) bool {
	return strings.Contains(c.logs[id-1].Said(), " takes clients at "+c.clients[id-1]+" ")
}

func ready(ctx context.Context, address string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return false
	}
	req.Close = true
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// keep runs a server, and restarts it when it dies, unless it says that a restart does not help. It
// fails if the server dies before the cluster was up.
func (c *devCluster) keep(ctx context.Context, id int) error {
	for {
		err := c.once(ctx, id)
		if ctx.Err() != nil {
			return nil
		}
		select {
		case <-c.ready:
		default:
			return fmt.Errorf("server %d: %s", id, c.reason(id, err))
		}
		if exit, is := errors.AsType[*exec.ExitError](err); is && exit.ExitCode() == ui.StatusFinal {
			c.app.Say("server %d ended (%s)", id, c.reason(id, err))
			<-ctx.Done()
			return nil
		}
		c.app.Say("server %d died (%s); restarting it in %v", id, c.reason(id, err), revival)
		select {
		case <-time.After(revival):
		case <-ctx.Done():
			return nil
		}
		c.logs[id-1] = local.NewLog(c.logFile(id))
	}
}

// reason returns why a server ended: its last line, if it exited by itself.
func (c *devCluster) reason(id int, err error) string {
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || !exit.Exited()) {
		return err.Error()
	}
	return strings.TrimPrefix(c.logs[id-1].LastLine(), "conclave: ")
}

// once runs a server until it exits. When ctx ends, it sends SIGTERM.
func (c *devCluster) once(ctx context.Context, id int) error {
	var peers []string
	for i, address := range c.peers {
		peers = append(peers, fmt.Sprintf("%d=%s", i+1, address))
	}
	log, err := c.logs[id-1].Open()
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, c.binary, "serve", "--config", "", "--id", strconv.Itoa(id), "--cluster-name", "dev",
		"--data", filepath.Join(c.dir, fmt.Sprint("server-", id)),
		"--listen", c.clients[id-1], "--peer-listen", c.peers[id-1], "--peers", strings.Join(peers, ","))
	// Without the variables that would set or connect to other servers.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "CONCLAVE_") })
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = devTimeout
	local.Prepare(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	c.app.Say("server %d is process %d, takes clients at %s", id, cmd.Process.Pid, c.clients[id-1])
	return cmd.Wait()
}

func (c *devCluster) logFile(id int) string {
	return filepath.Join(c.dir, fmt.Sprintf("server-%d.log", id))
}

const (
	// peerStep is the distance from a server's port for clients to its port for servers.
	peerStep = 100
	// lastDevPort is the highest --port with which nine servers have valid ports.
	lastDevPort = 65535 - peerStep - 10
)

// devAddresses returns the addresses at which the servers take clients, and each other.
func devAddresses(servers, port int) (clients, peers []string) {
	for i := range servers {
		clients = append(clients, net.JoinHostPort("127.0.0.1", strconv.Itoa(port+i)))
		peers = append(peers, net.JoinHostPort("127.0.0.1", strconv.Itoa(port+peerStep+i)))
	}
	return clients, peers
}

// devFree returns an error if the servers cannot listen at one of their addresses, and suggests a
// --port. Without this check the servers of another dev would answer instead of those that cannot
// start.
func devFree(servers, port int) error {
	address, err := devTaken(servers, port)
	if err == nil {
		return nil
	}
	advice := "use another --port"
	for other := port + 10; other <= lastDevPort; other += 10 {
		if _, err := devTaken(servers, other); err == nil {
			advice = fmt.Sprintf("use --port %d, which is free", other)
			break
		}
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s: in use by another process, perhaps by another conclave dev; stop it, or %s", address, advice)
	}
	return fmt.Errorf("%s: cannot listen: %w; %s", address, err, advice)
}

// devTaken returns the first address that is not free, and why.
func devTaken(servers, port int) (string, error) {
	clients, peers := devAddresses(servers, port)
	for _, address := range append(clients, peers...) {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return address, err
		}
		l.Close()
	}
	return "", nil
}

package nemesis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/local"
)

// TestCopiesOfAServerThatIsCutOff starts a process with a copy of the data of server 2, while server 2
// is cut off from the others. They take the copy for server 2. When the cut ends, one of the two
// stops with status 78, and not both. Then the network leads the address of server 2 elsewhere, and back.
func TestCopiesOfAServerThatIsCutOff(t *testing.T) {
	runNemesis(t, plan{Copies: true})
}

// elsewhere is the place where the copies run.
const elsewhere = servers + 1

// copying is a cluster of which a server is copied.
type copying struct {
	world   *world
	cluster *local.Cluster
	binary  string
	dir     string
	copies  local.Group
	before  int // the length of the log of server 2 when its address led away
}

func runCopies(p plan, w *world) (err error) {
	c := &copying{world: w, binary: p.Binary, dir: filepath.Join(p.Dir, "said", "copies")}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	c.cluster, err = local.Start(local.Config{
		Binary: p.Binary, Dir: c.dir, Hosts: []string{host(1), host(2), host(3)}, Flags: []string{"--insecure", "--access", "open"}, Via: at,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.copies.Stop(), c.cluster.Stop()) }()
	ctx, cancel := context.WithTimeout(context.Background(), 5*testTimeout)
	defer cancel()
	for _, part := range []func(context.Context) error{c.connected(true), c.copyElsewhere, c.copyAtTheAddress} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	client, err := conclave.Dial(ctx, conclave.Config{Servers: c.cluster.Addresses()})
	if err != nil {
		return err
	}
	defer client.Close()
	lock, err := client.Lock(ctx, "still served")
	if err != nil {
		return err
	}
	return lock.Unlock(ctx)
}

// copyElsewhere starts the copy at another address, from which it reaches the others.
func (c *copying) copyElsewhere(ctx context.Context) error {
	if err := c.cut((*world).cut); err != nil {
		return err
	}
	if err := c.connected(false)(ctx); err != nil {
		return err
	}
	if err := c.startCopy("elsewhere", "--listen", host(elsewhere)+":7400", "--peer-listen", host(elsewhere)+":7500"); err != nil {
		return err
	}
	// The others dial the recorded address, so only the copy has connections, which it dialled.
	log := filepath.Join(c.dir, "elsewhere.log")
	err := until(ctx, func(context.Context) error {
		text, err := os.ReadFile(log)
		if err == nil && strings.Count(string(text), "connected to peer") < 2 {
			err = errors.Join(errors.New("the copy is not taken for server 2"), c.copies.Died())
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := c.cut((*world).mend); err != nil {
		return err
	}
	return c.oneStops(ctx)
}

// oneStops waits until one of the two processes with the data of server 2 has stopped. Then it ends the
// copy, and starts server 2 if that has stopped.
func (c *copying) oneStops(ctx context.Context) error {
	var first, second error
	err := until(ctx, func(context.Context) error {
		if first, second = c.cluster.Died(), c.copies.Died(); first == nil && second == nil {
			return errors.New("both processes with the data of server 2 run")
		}
		return nil
	})
	switch said := errors.Join(first, second); {
	case err != nil:
		return err
	case first != nil && second != nil:
		return fmt.Errorf("both processes have stopped: %w", said)
	case !strings.Contains(said.Error(), "(exit status 78)") || !strings.Contains(said.Error(), "two processes run with the data of server 2"):
		return said
	case first == nil:
		// On a machine that is slow enough, the copy has lost a connection before server 2 came back.
		fmt.Println("server 2 was cut off while a copy took its place: the copy stopped")
		c.copies.Reap(1)
		return c.connected(true)(ctx)
	}
	fmt.Println("server 2 was cut off while a copy took its place: it stopped when all others refused it")
	c.cluster.Reap(2)
	if err := errors.Join(c.copies.Stop(), c.cluster.Restart(2)); err != nil {
		return err
	}
	return c.connected(true)(ctx)
}

// copyAtTheAddress lets the network lead the address of server 2 to another place, and back: first
// nothing runs there, and then a copy. Without a copy, server 2 goes on. With one, it may lack an entry
// that the copy has acknowledged in its place. Then it stops, and says that.
func (c *copying) copyAtTheAddress(ctx context.Context) error {
	there := "ip -netns " + place(elsewhere)
	for _, command := range []string{
		there + " address add " + host(2) + "/32 dev eth0",
		there + " route replace default via " + router(elsewhere) + " src " + host(2),
	} {
		if err := run(strings.Fields(command)...); err != nil {
			return err
		}
	}
	nothing := func(context.Context) error { return nil }
	back := func() bool { return false }
	if err := c.leadAway(ctx, nothing, back); err != nil {
		return err
	}
	fmt.Println("the address of server 2 led away and back: server 2 goes on")
	started := func(ctx context.Context) error {
		return errors.Join(c.startCopy("same-address"), c.connected(true)(ctx), c.copies.Died())
	}
	back = func() bool {
		died := c.cluster.Died()
		return died != nil && strings.Contains(died.Error(), "its data was lost or set back to an older state")
	}
	if err := c.leadAway(ctx, started, back); err != nil {
		return err
	}
	fmt.Println("the address of server 2 led to a copy and back: server 2 goes on, or stops because it lacks an entry")
	if strings.Contains(c.saidBy(2)[c.before:], "two processes run with the data of server 2") {
		return errors.New("server 2 is refused as a copy")
	}
	return nil
}

// leadAway lets the network lead the address of server 2 to the place elsewhere while something
// happens, and waits until server 2 is connected again, or has stopped in the way that back accepts.
func (c *copying) leadAway(ctx context.Context, happens func(context.Context) error, back func() bool) error {
	c.before = len(c.saidBy(2))
	way := []string{host(2) + "/32", "via", host(elsewhere), "dev", line(elsewhere)}
	if err := run(append([]string{"ip", "route", "add"}, way...)...); err != nil {
		return err
	}
	err := until(ctx, func(context.Context) error {
		if strings.Count(c.saidBy(2)[c.before:], "lost the connection to peer") < 2 {
			return errors.New("server 2 has not noticed that it reaches nobody")
		}
		return nil
	})
	if err := errors.Join(err, happens(ctx)); err != nil {
		return err
	}
	if err := run(append([]string{"ip", "route", "delete"}, way...)...); err != nil {
		return err
	}
	return until(ctx, func(context.Context) error {
		if !back() && strings.Count(c.saidBy(2)[c.before:], "connected to peer") < 2 {
			return errors.Join(errors.New("server 2 has not connected again"), c.cluster.Died())
		}
		return nil
	})
}

func (c *copying) saidBy(id int) string {
	text, _ := os.ReadFile(c.cluster.LogFile(id))
	return string(text)
}

// cut cuts server 2 off from the other servers, or ends that.
func (c *copying) cut(do func(w *world, from, to int) error) error {
	return errors.Join(do(c.world, 2, 1), do(c.world, 1, 2), do(c.world, 2, 3), do(c.world, 3, 2))
}

// startCopy copies the data of server 2, and starts a process with them elsewhere.
func (c *copying) startCopy(name string, flags ...string) error {
	data := filepath.Join(c.dir, name)
	from := c.cluster.Dir(2)
	for _, part := range []string{"wal", "snap"} {
		if err := os.CopyFS(filepath.Join(data, part), os.DirFS(filepath.Join(from, part))); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(from, entry.Name()))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(data, entry.Name()), content, 0o600); err != nil {
			return err
		}
	}
	words := append(at(elsewhere), c.binary)
	words = append(words, c.cluster.Command(2, append([]string{"--data", data}, flags...)...)...)
	return c.copies.Run(1, filepath.Join(c.dir, name+".log"), exec.Command(words[0], words[1:]...))
}

// connected returns a function that waits until the other servers have a connection to server 2, or
// have none.
func (c *copying) connected(want bool) func(context.Context) error {
	line := `conclave_peer_up{peer="2"} ` + map[bool]string{true: "1", false: "0"}[want]
	return func(ctx context.Context) error {
		return until(ctx, func(ctx context.Context) error {
			for _, id := range []int{1, 3} {
				ask, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.cluster.Addresses()[id-1]+"/metrics", nil)
				if err != nil {
					return err
				}
				answer, err := http.DefaultClient.Do(ask)
				if err != nil {
					return errors.Join(err, c.cluster.Died())
				}
				text, err := io.ReadAll(answer.Body)
				answer.Body.Close()
				if err == nil && !strings.Contains(string(text), line) {
					err = fmt.Errorf("server %d does not report %s", id, line)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
}

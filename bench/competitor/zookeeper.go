package competitor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/conclave-io/conclave/internal/cli/bench"
)

// zooKeeperJar is its path in Debian's package. Its manifest names the other archives.
const zooKeeperJar = "/usr/share/java/zookeeper.jar"

type zooKeeper struct {
	*group
	addresses []string
}

func startZooKeeper(_ Binaries, dir string) (Service, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("%w: there is no java in PATH (apt-get install default-jre-headless)", ErrAbsent)
	}
	if _, err := os.Stat(zooKeeperJar); err != nil {
		return nil, fmt.Errorf("%w: there is no %s (apt-get install zookeeper)", ErrAbsent, zooKeeperJar)
	}
	const servers = 3
	free, err := freeAddresses(3 * servers)
	if err != nil {
		return nil, err
	}
	z := &zooKeeper{addresses: free[:servers]}
	members := ""
	for i := range servers {
		members += fmt.Sprintf("server.%d=%s:%s\n", i+1, free[servers+i], port(free[2*servers+i]))
	}
	var commands [][]string
	for i := range servers {
		file, err := configureZooKeeper(dir, i+1, port(z.addresses[i]), members)
		if err != nil {
			return nil, err
		}
		commands = append(commands, []string{
			java, "-Xmx512m", "-Djava.net.preferIPv4Stack=true", "-cp", zooKeeperJar,
			"org.apache.zookeeper.server.quorum.QuorumPeerMain", file,
		})
	}
	z.group, err = startGroup(dir, commands...)
	return z, err
}

// configureZooKeeper writes the files of one server and returns the path of the configuration. The
// time settings are those of the sample configuration of ZooKeeper.
func configureZooKeeper(dir string, id int, clients, members string) (string, error) {
	data := filepath.Join(dir, fmt.Sprint("server-", id))
	if err := os.MkdirAll(data, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(data, "myid"), fmt.Appendln(nil, id), 0o600); err != nil {
		return "", err
	}
	file := data + ".cfg"
	text := fmt.Sprintf("tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=%s\nclientPortAddress=127.0.0.1\nclientPort=%s\n"+
		"maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\n%s", data, clients, members)
	return file, os.WriteFile(file, []byte(text), 0o600)
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// Lockers uses the lock of the Go client, which follows ZooKeeper's recipe: a sequential node, and
// a watch on the preceding node.
func (z *zooKeeper) Lockers(ctx context.Context, _ string, clients, connections int) ([]bench.Locker, func(), error) {
	var conns []*zk.Conn
	var closing []func()
	for range connections {
		conn, events, err := zk.Connect(z.addresses, TTL, zk.WithLogger(silent{}))
		if err != nil {
			closers(ctx, closing)()
			return nil, nil, err
		}
		closing = append(closing, conn.Close)
		conns = append(conns, conn)
		if err := joined(ctx, events); err != nil {
			closers(ctx, closing)()
			return nil, nil, err
		}
	}
	var lockers []bench.Locker
	for i := range clients {
		lockers = append(lockers, zooKeeperLocker(conns[i%connections]))
	}
	return lockers, closers(ctx, closing), nil
}

// joined waits until the connection has a session.
func joined(ctx context.Context, events <-chan zk.Event) error {
	limit := time.After(settling)
	for {
		select {
		case ev := <-events:
			if ev.State == zk.StateHasSession {
				return nil
			}
		case <-limit:
			return fmt.Errorf("no session within %v", settling)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// zooKeeperLocker returns when ctx is cancelled. The lock of the client library cannot do that: it
// continues to wait. When it gets the lock, zooKeeperLocker releases it at once.
func zooKeeperLocker(conn *zk.Conn) bench.Locker {
	return func(ctx context.Context, name string) (bench.Release, error) {
		lock := zk.NewLock(conn, "/"+name, zk.WorldACL(zk.PermAll))
		locked := make(chan error, 1)
		go func() { locked <- lock.Lock() }()
		select {
		case err := <-locked:
			return func(context.Context) error { return lock.Unlock() }, err
		case <-ctx.Done():
			go func() {
				if <-locked == nil {
					_ = lock.Unlock()
				}
			}()
			return nil, ctx.Err()
		}
	}
}

func (z *zooKeeper) Leader(context.Context) (int, error) {
	leader := 0
	for i, address := range z.addresses {
		mode, err := zooKeeperMode(address)
		switch {
		case err != nil:
			return 0, err
		case mode == "leader" && leader != 0:
			return 0, errors.New("two servers lead")
		case mode == "leader":
			leader = i + 1
		case mode != "follower":
			return 0, fmt.Errorf("server %d is %q", i+1, mode)
		}
	}
	if leader == 0 {
		return 0, errors.New("nobody leads")
	}
	return leader, nil
}

func zooKeeperMode(address string) (string, error) {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	_, after, _ := strings.Cut(string(answer), "Mode: ")
	mode, _, _ := strings.Cut(after, "\n")
	return mode, err
}

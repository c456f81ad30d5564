package competitor

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/bench"
)

// Conclave is a cluster of three servers.
type Conclave struct {
	*group
	// Addresses are the addresses for clients, by server.
	Addresses []string
	// Profiles are the addresses at which the servers serve profiles.
	Profiles []string
	// Sockets are the admin sockets of the servers.
	Sockets []string
	// Token authenticates the clients, if there are rules.
	Token string
}

// StartConclave starts a cluster with its data in dir.
func StartConclave(binary, dir string) (*Conclave, error) {
	const servers = 3
	free, err := freeAddresses(3 * servers)
	if err != nil {
		return nil, err
	}
	c := &Conclave{Addresses: free[:servers], Profiles: free[2*servers:]}
	others := free[servers : 2*servers]
	var peers []string
	for i, address := range others {
		peers = append(peers, fmt.Sprintf("%d=%s", i+1, address))
	}
	var commands [][]string
	for i := range servers {
		data := filepath.Join(dir, fmt.Sprint("server-", i+1))
		c.Sockets = append(c.Sockets, filepath.Join(data, "admin.sock"))
		commands = append(commands, []string{
			binary, "serve", "--id", fmt.Sprint(i + 1), "--cluster-name", "bench",
			"--data", data, "--peers", strings.Join(peers, ","),
			"--listen", c.Addresses[i], "--peer-listen", others[i], "--pprof", c.Profiles[i],
		})
	}
	c.group, err = startGroup(dir, commands...)
	return c, err
}

// Config returns the configuration of a client for this cluster.
func (c *Conclave) Config() conclave.Config {
	config := conclave.Config{Servers: c.Addresses, TTL: TTL}
	if c.Token != "" {
		config.Token = func(context.Context) (string, error) { return c.Token, nil }
	}
	return config
}

func (c *Conclave) Lockers(ctx context.Context, workload string, clients, connections int) ([]bench.Locker, func(), error) {
	conns, err := bench.Connect(ctx, c.Config(), connections)
	var closing []func()
	for _, conn := range conns {
		closing = append(closing, func() { conn.Close() })
	}
	stop := closers(ctx, closing)
	if err != nil {
		stop()
		return nil, nil, err
	}
	var lockers []bench.Locker
	for i := range clients {
		lockers = append(lockers, bench.LockerOf(conns[i%connections], workload, 0))
	}
	return lockers, stop, nil
}

func (c *Conclave) Leader(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client, err := conclave.Dial(ctx, c.Config())
	if err != nil {
		return 0, err
	}
	defer client.Close()
	if err := client.Ready(ctx); err != nil { // so that the client is connected to the leader
		return 0, err
	}
	status, err := admin.New(client).Status(ctx)
	if err != nil {
		return 0, err
	}
	if status.Leader == 0 || status.Server != status.Leader {
		return 0, fmt.Errorf("server %d answered, and server %d leads", status.Server, status.Leader)
	}
	for _, m := range status.Members {
		if !m.Voter || m.ID != status.Leader && (!m.Connected || m.MatchIndex+slack < status.CommitIndex) {
			return 0, fmt.Errorf("server %d has not caught up", m.ID)
		}
	}
	return int(status.Leader), nil
}

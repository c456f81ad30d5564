package competitor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/conclave-io/conclave/internal/cli/bench"
)

type etcd struct {
	*group
	endpoints []string
}

func startEtcd(binaries Binaries, dir string) (Service, error) {
	const servers = 3
	free, err := freeAddresses(2 * servers)
	if err != nil {
		return nil, err
	}
	e := &etcd{}
	var members []string
	for i := range servers {
		e.endpoints = append(e.endpoints, "http://"+free[i])
		members = append(members, fmt.Sprintf("e%d=http://%s", i+1, free[servers+i]))
	}
	var commands [][]string
	for i := range servers {
		peerURL := "http://" + free[servers+i]
		commands = append(commands, []string{
			binaries.Etcd, "--name", fmt.Sprint("e", i+1), "--data-dir", filepath.Join(dir, fmt.Sprint("server-", i+1)),
			"--listen-client-urls", e.endpoints[i], "--advertise-client-urls", e.endpoints[i],
			"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL,
			"--initial-cluster", strings.Join(members, ","), "--initial-cluster-state", "new", "--log-level", "warn",
		})
	}
	e.group, err = startGroup(dir, commands...)
	return e, err
}

func (e *etcd) dial(ctx context.Context) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: e.endpoints, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
		DialKeepAliveTime: 2 * time.Second, DialKeepAliveTimeout: 6 * time.Second, // the defaults of etcdctl
	})
}

// Lockers uses concurrency.Mutex. A mutex of etcd does not exclude two users of the same session
// from each other. So clients that compete for a lock have a session each.
func (e *etcd) Lockers(ctx context.Context, workload string, clients, connections int) ([]bench.Locker, func(), error) {
	var closing []func()
	fail := func(err error) ([]bench.Locker, func(), error) {
		closers(ctx, closing)()
		return nil, nil, err
	}
	var conns []*clientv3.Client
	for range connections {
		conn, err := e.dial(context.WithoutCancel(ctx))
		if err != nil {
			return fail(err)
		}
		closing = append(closing, func() { conn.Close() })
		conns = append(conns, conn)
	}
	sessions := connections
	if workload != bench.Uncontended {
		sessions = clients
	}
	var held []*concurrency.Session
	for i := range sessions {
		s, err := concurrency.NewSession(conns[i%connections], concurrency.WithTTL(int(TTL/time.Second)))
		if err != nil {
			return fail(err)
		}
		closing = append(closing, func() { s.Close() })
		held = append(held, s)
	}
	var lockers []bench.Locker
	for i := range clients {
		lockers = append(lockers, etcdLocker(held[i%sessions]))
	}
	return lockers, closers(ctx, closing), nil
}

func etcdLocker(s *concurrency.Session) bench.Locker {
	return func(ctx context.Context, name string) (bench.Release, error) {
		m := concurrency.NewMutex(s, name)
		if err := m.Lock(ctx); err != nil {
			return nil, err
		}
		return m.Unlock, nil
	}
}

func (e *etcd) Leader(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client, err := e.dial(ctx)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	leader, followed := 0, uint64(0)
	for i, endpoint := range e.endpoints {
		status, err := client.Status(ctx, endpoint)
		if err != nil {
			return 0, err
		}
		if followed != 0 && status.Leader != followed {
			return 0, errors.New("the servers do not follow the same leader")
		}
		followed = status.Leader
		if status.Leader == status.Header.MemberId {
			leader = i + 1
		}
		if status.RaftAppliedIndex+slack < status.RaftIndex {
			return 0, errors.New("a server has not caught up")
		}
	}
	if leader == 0 {
		return 0, errors.New("nobody leads")
	}
	return leader, nil
}

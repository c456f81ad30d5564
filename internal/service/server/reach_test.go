package server_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// network is what a client reaches servers through.
type network struct {
	mu    sync.Mutex
	cut   map[string]bool
	conns map[string][]net.Conn
}

func (n *network) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut[address] {
		conn.Close()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH}
	}
	n.conns[address] = append(n.conns[address], conn)
	return conn, nil
}

// set cuts the network to a server, with all its connections, or restores it.
func (n *network) set(address string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[address] = cut
	if cut {
		for _, conn := range n.conns[address] {
			conn.Close()
		}
		n.conns[address] = nil
	}
}

// A client that reaches only followers keeps its session and its locks, and acquires and
// releases others. When a server that it can reach leads, it connects to that server.
func TestAClientThatReachesOnlyFollowers(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	c := servertest.Start(t, 3)
	leader := c.Leader()
	way := &network{cut: make(map[string]bool), conns: make(map[string][]net.Conn)}
	client, err := conclave.Dial(within(t), conclave.Config{Servers: c.Addresses(), TTL: ttl, Dialer: way.dial})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	held, err := client.Lock(within(t), "held")
	if err != nil {
		t.Fatal(err)
	}
	if client.Server() != c.Address(leader) {
		t.Fatalf("server %d leads, the client is attached to %s", leader, client.Server())
	}

	way.set(c.Address(leader), true)
	for begun, n := time.Now(), 0; time.Since(begun) < 4*ttl; n++ {
		l, err := client.Lock(within(t), fmt.Sprint("other", n))
		if err == nil {
			err = l.Unlock(within(t))
		}
		if err != nil {
			t.Fatal(err)
		}
		if held.Context().Err() != nil {
			t.Fatalf("after %v the lock is lost: %v", time.Since(begun), context.Cause(held.Context()))
		}
	}
	if at := client.Server(); at == c.Address(leader) || at == "" {
		t.Errorf("the client is attached to %q", at)
	}
	if now := c.Leader(); now != leader {
		t.Fatalf("server %d leads instead of %d: nothing was tested", now, leader)
	}

	c.Stop(leader)
	next := c.Leader()
	servertest.Eventually(t, "the client is attached to the new leader", func() bool { return client.Server() == c.Address(next) })
	if held.Context().Err() != nil {
		t.Errorf("with the new leader the lock is lost: %v", context.Cause(held.Context()))
	}

	way.set(c.Address(next), true)
	servertest.Eventually(t, "the client is attached to another", func() bool { at := client.Server(); return at != "" && at != c.Address(next) })
	way.set(c.Address(next), false)
	servertest.Eventually(t, "the client has found the leader again", func() bool { return client.Server() == c.Address(next) })
	if err := held.Unlock(within(t)); err != nil {
		t.Error(err)
	}
}

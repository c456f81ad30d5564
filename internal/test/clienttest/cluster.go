// Package clienttest has a cluster in memory for tests of the client. It keeps the rules of the
// protocol in their plainest form, and tests can inject faults. It works on virtual time, in a
// bubble of testing/synctest.
package clienttest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client"
	"github.com/conclave-io/conclave/internal/client/line"
	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// Cluster is a cluster in memory. Its servers share one state, and one of them leads.
type Cluster struct {
	t        *testing.T
	Identity string
	Version  uint32 // of the interface
	Servers  []*Server
	began    time.Time

	mu     sync.Mutex
	state  *State
	home   home
	leader int // index of the leading server; -1 for none
	// lag returns how long a reply is held back, or a negative number if it is
	// lost; nil means neither.
	lag func(*api.Reply) time.Duration
	// cut are the addresses that clients cannot reach: nothing that is sent there
	// arrives.
	cut []string
	// told are the addresses that clients are told of, if any.
	told []string
	// expired is called when a session has expired, with the lock held.
	expired func(st *State, secret string)
	// streams leads from a session to where its requests last came from.
	streams map[string]*attached
	watches map[chan struct{}]bool
	done    chan struct{}
	tasks   sync.WaitGroup
}

// Server is one member: a gRPC server on connections in memory.
type Server struct {
	api.UnimplementedConclaveServer
	cluster *Cluster
	index   int
	Address string

	mu       sync.Mutex
	running  *sync.Cond // broadcast when stopped changes
	stopped  bool
	listener *bufconn.Listener // nil while killed
	grpc     *grpc.Server
	Dials    atomic.Int64 // connections that were made
}

// attached is one Attach stream.
type attached struct {
	server *Server
	relay  bool
	out    chan *api.ServerFrame
	gone   <-chan struct{}
}

// New starts a cluster of n servers, of which the first leads. It stops with the test.
func New(t *testing.T, n int) *Cluster {
	c := &Cluster{
		t: t, Identity: "00000000000000c1", Version: line.ProtocolVersion, began: time.Now(), state: newState(),
		streams: make(map[string]*attached), watches: make(map[chan struct{}]bool), done: make(chan struct{}),
	}
	for i := range n {
		s := &Server{cluster: c, index: i, Address: fmt.Sprintf("server%d.test:7400", i+1)}
		s.running = sync.NewCond(&s.mu)
		c.Servers = append(c.Servers, s)
		s.Start()
	}
	c.tasks.Go(c.expire)
	t.Cleanup(c.close)
	return c
}

func (c *Cluster) close() {
	close(c.done)
	for _, s := range c.Servers {
		s.Resume()
		s.Kill()
	}
	c.tasks.Wait()
}

// Now is a clock of deadlines that runs on virtual time in a synctest bubble.
func (c *Cluster) Now() boottime.Time { return boottime.Time(time.Since(c.began)) + 1 }

// Config returns the configuration of a client of the cluster. Dial it with Context.
func (c *Cluster) Config() conclave.Config {
	cfg := conclave.Config{TTL: 2 * time.Second, Dialer: c.Dial, Program: "test"}
	for _, s := range c.Servers {
		cfg.Servers = append(cfg.Servers, s.Address)
	}
	return cfg
}

// Context returns ctx with the clock of the cluster, for conclave.Dial.
func (c *Cluster) Context(ctx context.Context) context.Context {
	return client.WithClock(ctx, c.Now)
}

// Connect returns a client of the cluster, which is closed when the test ends.
func (c *Cluster) Connect(change ...func(*conclave.Config)) *conclave.Client {
	c.t.Helper()
	cfg := c.Config()
	for _, f := range change {
		f(&cfg)
	}
	connected, err := conclave.Dial(c.Context(c.t.Context()), cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { connected.Close() })
	return connected
}

// Dial is the network.
func (c *Cluster) Dial(ctx context.Context, address string) (net.Conn, error) {
	i := slices.IndexFunc(c.Servers, func(s *Server) bool { return s.Address == address })
	if i < 0 {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH}
	}
	s := c.Servers[i]
	if c.isCut(address) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s.mu.Lock()
	listener := s.listener
	s.mu.Unlock()
	if listener == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	s.Dials.Add(1)
	conn, err := listener.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	return &gated{Conn: conn, server: s}, nil
}

// gated is a connection whose far end stands still while its server is stopped:
// what was sent stays in buffers.
type gated struct {
	net.Conn
	server *Server
	closed bool // guarded by server.mu
}

func (g *gated) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	if err == nil {
		g.wait()
	}
	return n, err
}

func (g *gated) wait() {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	for g.server.stopped && !g.closed {
		g.server.running.Wait()
	}
}

func (g *gated) Close() error {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	g.closed = true
	g.server.running.Broadcast()
	return g.Conn.Close()
}

// Start makes the server accept connections.
func (s *Server) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener = bufconn.Listen(1 << 20)
	s.grpc = grpc.NewServer()
	api.RegisterConclaveServer(s.grpc, s)
	g, l := s.grpc, s.listener
	s.cluster.tasks.Go(func() { g.Serve(l) })
}

// Kill ends the server and all its connections. What it knows stays.
func (s *Server) Kill() {
	s.mu.Lock()
	g := s.grpc
	s.listener, s.grpc = nil, nil
	s.mu.Unlock()
	if g != nil {
		g.Stop()
	}
}

// Stop makes the server stand still, as SIGSTOP does.
func (s *Server) Stop() { s.hold(true) }

// Resume lets a stopped server go on, as SIGCONT does.
func (s *Server) Resume() { s.hold(false) }

func (s *Server) hold(stopped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = stopped
	s.running.Broadcast()
}

// Lead makes the server with the index lead, or none for -1.
func (c *Cluster) Lead(index int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leader = index
	// A new leader starts every session at its full TTL.
	for _, s := range c.state.Sessions {
		s.until = max(s.until, c.Now().Add(s.ttl))
	}
	for _, a := range c.streams {
		if a.server.index != index || a.relay {
			a.send(&api.ServerFrame{Farewell: c.farewell()})
		}
	}
}

func (c *Cluster) farewell() *api.Farewell {
	f := &api.Farewell{Code: api.Code_CODE_NOT_LEADER}
	if c.leader >= 0 {
		f.Leader = c.Servers[c.leader].Address
	}
	return f
}

// Tell lets all attached clients know where the servers are.
func (c *Cluster) Tell(servers ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.streams {
		a.send(&api.ServerFrame{Servers: servers})
	}
}

func (a *attached) send(f *api.ServerFrame) {
	select {
	case a.out <- f:
	case <-a.gone:
	}
}

// expire ends sessions at their time.
func (c *Cluster) expire() {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-tick.C:
		}
		c.mu.Lock()
		if c.leader >= 0 {
			for id, s := range c.state.Sessions {
				if c.Now() >= s.until {
					if c.expired != nil {
						c.expired(c.state, id)
					}
					c.deliver(c.state.end(id))
				}
			}
		}
		c.mu.Unlock()
	}
}

// deliver routes replies to the sessions' streams.
func (c *Cluster) deliver(replies []*api.Reply) {
	for _, rep := range replies {
		a := c.streams[string(rep.Session)]
		if a == nil {
			continue
		}
		lag := time.Duration(0)
		if c.lag != nil {
			lag = c.lag(rep)
		}
		switch frame := (&api.ServerFrame{Replies: []*api.Reply{rep}, Servers: c.told}); {
		case lag == 0:
			a.send(frame)
		case lag > 0:
			time.AfterFunc(lag, func() { a.send(frame) })
		}
	}
	for w := range c.watches {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

func (s *Server) Attach(stream grpc.BidiStreamingServer[api.ClientFrame, api.ServerFrame]) error {
	c := s.cluster
	stream.Send(&api.ServerFrame{Welcome: &api.Welcome{Cluster: c.Identity, Server: uint64(s.index + 1), Version: c.Version}})
	relay := len(metadata.ValueFromIncomingContext(stream.Context(), "conclave-relay")) > 0
	a := &attached{server: s, relay: relay, out: make(chan *api.ServerFrame, 1<<14), gone: stream.Context().Done()}
	c.mu.Lock()
	if c.leader != s.index && (!relay || c.leader < 0) {
		defer c.mu.Unlock()
		return stream.Send(&api.ServerFrame{Farewell: c.farewell()})
	}
	c.mu.Unlock()
	go s.receive(stream, a)
	for {
		select {
		case <-a.gone:
			return stream.Context().Err()
		case f := <-a.out:
			if err := stream.Send(f); err != nil || f.Farewell != nil {
				return err
			}
		}
	}
}

func (s *Server) receive(stream grpc.BidiStreamingServer[api.ClientFrame, api.ServerFrame], a *attached) {
	for {
		frame, err := stream.Recv()
		if err != nil {
			return
		}
		s.cluster.mu.Lock()
		s.cluster.take(a, frame)
		s.cluster.mu.Unlock()
	}
}

func (c *Cluster) take(a *attached, frame *api.ClientFrame) {
	if a.server.index != c.leader && (!a.relay || c.leader < 0) {
		a.send(&api.ServerFrame{Farewell: c.farewell()})
		return
	}
	for _, req := range frame.Requests {
		c.streams[string(req.Session)] = a
		c.deliver(c.state.apply(req, c.Now()))
	}
}

func (s *Server) Ping(context.Context, *api.PingRequest) (*api.PingResponse, error) {
	return &api.PingResponse{}, nil
}

func (s *Server) Status(context.Context, *api.StatusRequest) (*api.StatusResponse, error) {
	c := s.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	return &api.StatusResponse{
		Cluster: c.Identity, Server: uint64(s.index + 1), Leader: uint64(c.leader + 1), Fence: c.state.Fence,
		Sessions: uint64(len(c.state.Sessions)), Members: []*api.Member{{Id: 1, ClientAddress: c.Servers[0].Address, Voter: true}},
	}, nil
}

func (s *Server) List(_ context.Context, req *api.ListRequest) (*api.ListResponse, error) {
	c := s.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.list(req, 2), nil
}

func (s *Server) Sessions(_ context.Context, req *api.SessionsRequest) (*api.SessionsResponse, error) {
	c := s.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.listSessions(req, 2), nil
}

func (s *Server) EndSession(_ context.Context, req *api.EndSessionRequest) (*api.EndSessionResponse, error) {
	c := s.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	for secret, session := range c.state.Sessions {
		if bytes.Equal(PublicID(secret), req.Id) {
			answer := &api.EndSessionResponse{Holds: uint32(len(session.claims))}
			c.deliver(c.state.end(secret))
			return answer, nil
		}
	}
	return nil, status.Error(codes.NotFound, "no such session")
}

func (s *Server) Observe(req *api.ObserveRequest, stream grpc.ServerStreamingServer[api.Observation]) error {
	c := s.cluster
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	c.mu.Lock()
	c.watches[changed] = true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watches, changed)
	}()
	for {
		select {
		case <-stream.Context().Done():
			return nil
		case <-changed:
		}
		c.mu.Lock()
		obs := c.state.observe(req.Name)
		c.mu.Unlock()
		if err := stream.Send(obs); err != nil {
			return err
		}
	}
}

package conclave

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

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// cluster is a cluster in memory. Its servers share one state, and one of them leads.
// Tests can inject faults.
type cluster struct {
	t        *testing.T
	identity string
	version  uint32 // of the interface
	began    time.Time
	servers  []*server

	mu     sync.Mutex
	state  *state
	home   fakeHome
	leader int // index of the leading server; -1 for none
	// lag returns how long a reply is held back, or a negative number if it is
	// lost; nil means neither.
	lag func(*api.Reply) time.Duration
	// cut are the addresses that clients cannot reach: nothing that is sent there
	// arrives.
	cut map[string]bool
	// told are the addresses that clients are told of, if any.
	told []string
	// expired is called when a session has expired, with the lock held.
	expired func(id string)
	// streams leads from a session to where its requests last came from.
	streams map[string]*attached
	watches map[chan struct{}]bool
	done    chan struct{}
	tasks   sync.WaitGroup
}

// server is one member: a gRPC server on connections in memory.
type server struct {
	api.UnimplementedConclaveServer
	cluster *cluster
	index   int
	address string

	mu       sync.Mutex
	running  *sync.Cond // broadcast when stopped changes
	stopped  bool
	listener *bufconn.Listener // nil while killed
	grpc     *grpc.Server
	dials    atomic.Int64
}

// attached is one Attach stream.
type attached struct {
	server *server
	relay  bool
	out    chan *api.ServerFrame
	gone   <-chan struct{}
}

func newCluster(t *testing.T, n int) *cluster {
	c := &cluster{
		t: t, identity: "00000000000000c1", version: line.ProtocolVersion, began: time.Now(), state: newState(),
		streams: make(map[string]*attached), watches: make(map[chan struct{}]bool), done: make(chan struct{}),
	}
	for i := range n {
		s := &server{cluster: c, index: i, address: fmt.Sprintf("server%d.test:7400", i+1)}
		s.running = sync.NewCond(&s.mu)
		c.servers = append(c.servers, s)
		s.start()
	}
	c.tasks.Go(c.expire)
	t.Cleanup(c.close)
	return c
}

func (c *cluster) close() {
	close(c.done)
	for _, s := range c.servers {
		s.resume()
		s.kill()
	}
	c.tasks.Wait()
}

// now is a clock of deadlines that runs on virtual time in a synctest bubble.
func (c *cluster) now() boottime.Time { return boottime.Time(time.Since(c.began)) + 1 }

func (c *cluster) config() Config {
	cfg := Config{TTL: 2 * time.Second, now: c.now, Dialer: c.dial, Program: "test"}
	for _, s := range c.servers {
		cfg.Servers = append(cfg.Servers, s.address)
	}
	return cfg
}

func (c *cluster) connect(change ...func(*Config)) *Client {
	c.t.Helper()
	cfg := c.config()
	for _, f := range change {
		f(&cfg)
	}
	client, err := Dial(c.t.Context(), cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { client.Close() })
	return client
}

// dial is the network.
func (c *cluster) dial(ctx context.Context, address string) (net.Conn, error) {
	i := slices.IndexFunc(c.servers, func(s *server) bool { return s.address == address })
	if i < 0 {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH}
	}
	s := c.servers[i]
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
	s.dials.Add(1)
	conn, err := listener.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	return &gated{Conn: conn, server: s}, nil
}

func (c *cluster) isCut(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut[address]
}

// gated is a connection whose far end stands still while its server is stopped:
// what was sent stays in buffers.
type gated struct {
	net.Conn
	server *server
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

func (s *server) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener = bufconn.Listen(1 << 20)
	s.grpc = grpc.NewServer()
	api.RegisterConclaveServer(s.grpc, s)
	g, l := s.grpc, s.listener
	s.cluster.tasks.Go(func() { g.Serve(l) })
}

func (s *server) kill() {
	s.mu.Lock()
	g := s.grpc
	s.listener, s.grpc = nil, nil
	s.mu.Unlock()
	if g != nil {
		g.Stop()
	}
}

// stop is SIGSTOP, resume is SIGCONT.
func (s *server) stop() { s.hold(true) }

func (s *server) resume() { s.hold(false) }

func (s *server) hold(stopped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = stopped
	s.running.Broadcast()
}

// lead makes the server with the index lead, or none for -1.
func (c *cluster) lead(index int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leader = index
	// A new leader starts every session at its full TTL.
	for _, s := range c.state.sessions {
		s.until = max(s.until, c.now().Add(s.ttl))
	}
	for _, a := range c.streams {
		if a.server.index != index || a.relay {
			a.send(&api.ServerFrame{Farewell: c.farewell()})
		}
	}
}

func (c *cluster) farewell() *api.Farewell {
	f := &api.Farewell{Code: api.Code_CODE_NOT_LEADER}
	if c.leader >= 0 {
		f.Leader = c.servers[c.leader].address
	}
	return f
}

// tell lets all attached clients know where the servers are.
func (c *cluster) tell(servers ...string) {
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
func (c *cluster) expire() {
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
			for id, s := range c.state.sessions {
				if c.now() >= s.until {
					if c.expired != nil {
						c.expired(id)
					}
					c.deliver(c.state.end(id))
				}
			}
		}
		c.mu.Unlock()
	}
}

// deliver routes replies to the sessions' streams.
func (c *cluster) deliver(replies []*api.Reply) {
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

func (s *server) Attach(stream grpc.BidiStreamingServer[api.ClientFrame, api.ServerFrame]) error {
	c := s.cluster
	stream.Send(&api.ServerFrame{Welcome: &api.Welcome{Cluster: c.identity, Server: uint64(s.index + 1), Version: c.version}})
	relay := len(metadata.ValueFromIncomingContext(stream.Context(), relayHeader)) > 0
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

func (s *server) receive(stream grpc.BidiStreamingServer[api.ClientFrame, api.ServerFrame], a *attached) {
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

func (c *cluster) take(a *attached, frame *api.ClientFrame) {
	if a.server.index != c.leader && (!a.relay || c.leader < 0) {
		a.send(&api.ServerFrame{Farewell: c.farewell()})
		return
	}
	for _, req := range frame.Requests {
		c.streams[string(req.Session)] = a
		c.deliver(c.state.apply(req, c.now()))
	}
}

func (s *server) Ping(context.Context, *api.PingRequest) (*api.PingResponse, error) {
	return &api.PingResponse{}, nil
}

func (s *server) Status(context.Context, *api.StatusRequest) (*api.StatusResponse, error) {
	c := s.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	return &api.StatusResponse{
		Cluster: c.identity, Server: uint64(s.index + 1), Leader: uint64(c.leader + 1), Fence: c.state.fence,
		Sessions: uint64(len(c.state.sessions)), Members: []*api.Member{{Id: 1, ClientAddress: c.servers[0].address, Voter: true}},
	}, nil
}

func (s *server) List(_ context.Context, req *api.ListRequest) (*api.ListResponse, error) {
	c := s.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.list(req, 2), nil
}

func (s *server) Sessions(_ context.Context, req *api.SessionsRequest) (*api.SessionsResponse, error) {
	c := s.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.listSessions(req, 2), nil
}

func (s *server) EndSession(_ context.Context, req *api.EndSessionRequest) (*api.EndSessionResponse, error) {
	c := s.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	for secret, session := range c.state.sessions {
		if bytes.Equal(publicOf(secret), req.Id) {
			answer := &api.EndSessionResponse{Holds: uint32(len(session.claims))}
			c.deliver(c.state.end(secret))
			return answer, nil
		}
	}
	return nil, status.Error(codes.NotFound, "no such session")
}

func (s *server) Observe(req *api.ObserveRequest, stream grpc.ServerStreamingServer[api.Observation]) error {
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

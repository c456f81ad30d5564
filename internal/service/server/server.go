package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/kit/near"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/admin"
	"github.com/conclave-io/conclave/internal/service/admission"
	"github.com/conclave-io/conclave/internal/service/attach"
	"github.com/conclave-io/conclave/internal/service/audit"
	"github.com/conclave-io/conclave/internal/service/auditlog"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/certs"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/guarded"
	"github.com/conclave-io/conclave/internal/service/listen"
	"github.com/conclave-io/conclave/internal/service/metrics"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/query"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/rest"
)

// partingTime is how long Stop waits for calls to end before it cancels them.
const partingTime = 2 * time.Second

// Server is a running server.
type Server struct {
	cfg      config.Server
	log      *slog.Logger
	identity string
	peers    map[uint64]string // the servers named at the start
	started  time.Time

	certs    *certs.Store
	node     *node.Node
	health   health
	metrics  *metrics.Metrics
	forward  *forward.Forwarder
	guarded  *guarded.Door
	streams  *attach.Streams
	query    *query.Calls
	admin    *admin.Acts
	numbers  numbers
	splitter *listen.Splitter
	audit    *auditlog.Log
	holds    *audit.Holds // nil without --audit-grants
	gate     *admission.Gate
	grpc     *grpc.Server
	// calls are the connections over which other servers call this one, and vouched
	// serves them.
	calls    *listen.Queue
	vouched  *grpc.Server
	http     *http.Server
	pprof    *http.Server
	profiles net.Listener // nil if no profiles are served
	probes   *http.Server
	probed   net.Listener // nil if there is no separate address for probes

	ctx    context.Context // ends when the server stops
	cancel context.CancelFunc
	// serving are the listeners' goroutines, tasks those of calls.
	serving, tasks sync.WaitGroup
	// waiting are the requests in queues here that only this server can withdraw.
	waiting   crowd
	abandoned *abandoned

	stopOnce sync.Once
	leaving  chan struct{} // closed when Stop begins
	done     chan struct{}
	err      error // read after done
}

// Start starts a server. It returns once clients can connect, which may be
// before the cluster has a leader.
func Start(cfg config.Server) (*Server, error) { return StartContext(context.Background(), cfg) }

// StartContext starts a server. A server that joins a cluster tries to do so until ctx ends,
// for at most a minute.
func StartContext(ctx context.Context, cfg config.Server) (*Server, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		closeAll(cfg.Listener, cfg.PeerListener)
		return nil, err
	}
	certificates, err := certs.Load(certFiles(cfg))
	if err != nil {
		closeAll(cfg.Listener, cfg.PeerListener)
		return nil, err
	}
	if cfg, err = openListeners(cfg); err != nil {
		return nil, err
	}
	cfg, from, err := resolve(ctx, cfg, certificates)
	if err != nil {
		closeAll(cfg.Listener, cfg.PeerListener)
		return nil, err
	}
	s := &Server{
		cfg: cfg, log: cfg.Log, certs: certificates, started: time.Now(), calls: listen.NewQueue(cfg.PeerListener.Addr()),
		leaving: make(chan struct{}), done: make(chan struct{}),
	}
	if cfg.AuditGrants != "" {
		s.holds = audit.NewHolds(cfg.AuditGrants)
	}
	if err := s.startNode(from); err != nil {
		closeAll(cfg.Listener)
		return nil, err
	}
	if err := s.serve(); err != nil {
		closeAll(cfg.Listener)
		return nil, errors.Join(err, s.node.Stop(context.Background()))
	}
	go s.finish()
	return s, nil
}

// certFiles returns the files of the certificates.
func certFiles(c config.Server) certs.Files {
	return certs.Files{
		Cert: c.TLSCert, Key: c.TLSKey, CA: c.TLSCA, Optional: c.ClientCert == config.CertOptional,
		PeerCert: c.PeerCert, PeerKey: c.PeerKey, PeerCA: c.PeerCA,
	}
}

func (s *Server) startNode(from origin) (err error) {
	s.identity, s.peers = config.FormatCluster(from.cluster), from.peers
	var audits node.Audits
	if s.holds != nil {
		audits = s.holds
	}
	s.node, err = node.Start(node.Config{
		ID: s.cfg.ID, Cluster: from.cluster, Peers: from.peers, Joined: from.joined, UID: from.uid, Dir: s.cfg.Data,
		PeerListener: s.cfg.PeerListener, PeerServerTLS: s.certs.PeerServer, PeerClientTLS: s.certs.PeerClient, PeerRoster: s.certs.PeerConns, Calls: s.calls.Conns(),
		ClientAddress: s.cfg.Advertise, Heartbeat: s.cfg.Heartbeat, Election: s.cfg.Election, ViewLease: s.cfg.ViewLease, StateLimit: s.cfg.StateLimit,
		Memory: s.cfg.Memory, Build: s.cfg.Version, Log: s.log, Limits: s.cfg.Limits, Audits: audits,
	})
	return err
}

// serve starts to serve clients.
func (s *Server) serve() error {
	socket, err := s.listenAside()
	if err != nil {
		closeAll(s.profiles, s.probed)
		return err
	}
	s.assemble()
	if socket != nil {
		socket = recorded{socket, s}
	}
	s.splitter = listen.NewSplitter(listen.Config{
		Clients: s.cfg.Listener, Admin: socket, TLS: s.certs.Clients, Roster: s.certs.ClientConns, Timeout: s.cfg.IOTimeout,
		Untrusted: func(why string) { s.metrics.AuthFailure("certificate", why) }, Log: s.log,
	})
	s.grpc = s.newGRPC(grpc.UnaryInterceptor(s.gate.Unary), grpc.StreamInterceptor(s.gate.Stream))
	s.vouched = s.newGRPC(grpc.UnaryInterceptor(s.gate.ForwardedUnary), grpc.StreamInterceptor(s.gate.ForwardedStream))
	s.http = s.newHTTP(s.routes())
	s.serving.Go(s.splitter.Run)
	s.serving.Go(s.abandoned.run)
	s.serving.Go(func() { s.report(s.grpc.Serve(s.splitter.GRPC)) })
	s.serving.Go(func() { s.report(s.vouched.Serve(s.calls)) })
	s.serving.Go(func() { s.report(s.http.Serve(s.splitter.HTTP)) })
	s.serving.Go(func() { s.certs.Watch(s.ctx, s.cfg.LookEvery, s.log, s.Reload) })
	s.serving.Go(func() { warnOfTokens(s.ctx, s.cfg.LookEvery, s.node.Rules, s.log) })
	if s.exposed() {
		s.serving.Go(func() { s.gate.Remind(s.ctx, s.log, s.Addr(), s.Leader) })
	}
	s.serveAside()
	return nil
}

// assemble makes the parts that carry out calls.
func (s *Server) assemble() {
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.forward = forward.New(s.ctx, forward.Config{
		Server: s.cfg.ID, Node: s.node, Heartbeat: s.cfg.Heartbeat, Stopping: s.stopping,
		Recheck: func(ctx context.Context) error { return s.gate.Recheck(ctx) },
	})
	s.abandoned = &abandoned{ctx: s.ctx, log: s.log, carryOut: s.carryOut, number: s.numbers.next, added: make(chan struct{}, 1)}
	s.guarded = guarded.New(guarded.Config{
		Server: s.cfg.ID, Node: s.node, Forward: s.forward, Decide: s.doHere,
		Status: func(ctx context.Context) (*api.StatusResponse, error) { return s.query.Describe(ctx) },
	})
	s.health = health{server: s.cfg.ID, node: s.node, stopping: s.stopping}
	s.audit = s.startAudit()
	s.metrics = metrics.New(s.measured())
	s.gate = s.newGate()
	s.streams = s.newStreams()
	s.query = query.New(query.Config{
		Server: s.cfg.ID, Cluster: s.identity, Version: s.cfg.Version, Started: s.started, Founders: s.peers,
		Node: s.node, Forward: s.forward, Guarded: s.guarded, Gate: s.gate, Metrics: s.metrics, Certs: s.certs, Go: s.tasks.Go,
	})
	s.admin = admin.New(admin.Config{
		Server: s.cfg.ID, Cluster: s.identity, ClusterName: s.cfg.ClusterName, Version: s.cfg.Version,
		Node: s.node, Forward: s.forward, Guarded: s.guarded, Query: s.query, Gate: s.gate, Metrics: s.metrics, Audit: s.audit,
	})
}

// listenAside opens the other listeners that the configuration asks for: for administration,
// profiles and probes. It returns the one for administration.
func (s *Server) listenAside() (socket net.Listener, err error) {
	if s.profiles, err = listenIfAsked("pprof", s.cfg.Pprof); err != nil {
		return nil, err
	}
	if s.probed, err = listenIfAsked("health-listen", s.cfg.HealthListen); err != nil {
		return nil, err
	}
	return listenAdmin(s.cfg)
}

// serveAside serves profiles and probes.
func (s *Server) serveAside() {
	if s.profiles != nil {
		s.pprof = s.newHTTP(profiles())
		s.serving.Go(func() { s.report(s.pprof.Serve(s.profiles)) })
	}
	if s.probed != nil {
		s.probes = s.newHTTP(s.health.pages(s.metrics.Handler()))
		s.serving.Go(func() { s.report(s.probes.Serve(s.probed)) })
	}
}

// service implements the gRPC interface of a server, and the calls over HTTP.
type service struct {
	api.UnsafeConclaveServer // so that the compiler reports a call that is missing
	*Server
	*guarded.Door
	*attach.Streams
	*query.Calls
	*admin.Acts
}

// Ping does nothing.
func (s service) Ping(context.Context, *api.PingRequest) (*api.PingResponse, error) {
	return &api.PingResponse{}, nil
}

// service returns all calls of the server.
func (s *Server) service() service {
	return service{Server: s, Door: s.guarded, Streams: s.streams, Calls: s.query, Acts: s.admin}
}

// newGRPC returns a gRPC server with all calls. The interceptors find out who makes them.
func (s *Server) newGRPC(interceptors ...grpc.ServerOption) *grpc.Server {
	server := grpc.NewServer(append(interceptors,
		grpc.Creds(authn.Credentials{Server: s.cfg.ID}),
		grpc.WaitForHandlers(true),
		grpc.ConnectionTimeout(s.cfg.IOTimeout),
		grpc.MaxConcurrentStreams(4096),
		// Windows of a fixed size avoid the pings with which gRPC estimates a better one.
		grpc.StaticStreamWindowSize(forward.Window),
		grpc.StaticConnWindowSize(forward.Window),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	)...)
	api.RegisterConclaveServer(server, s.service())
	return server
}

// newHTTP returns a server for HTTP/1.1 whose calls end when s does.
func (s *Server) newHTTP(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: s.cfg.IOTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return s.ctx },
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return rest.WithConn(authn.WithIdentity(ctx, authn.Identify(conn, "http", s.cfg.ID)), conn)
		},
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// Near returns this server for programs in its own process.
func (s *Server) Near() near.Server { return s.node.Home().Near(authn.Local(s.cfg.ID).Principal) }

// report logs why the server of a listener ended, if that is unexpected.
func (s *Server) report(err error) {
	if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, grpc.ErrServerStopped) {
		s.log.Error("listener failed", "err", err)
	}
}

// Addr returns the address for clients.
func (s *Server) Addr() net.Addr { return s.cfg.Listener.Addr() }

// PeerAddr returns the address for other servers.
func (s *Server) PeerAddr() net.Addr { return s.cfg.PeerListener.Addr() }

// PprofAddr returns the address of the profiles, or nil.
func (s *Server) PprofAddr() net.Addr {
	if s.profiles == nil {
		return nil
	}
	return s.profiles.Addr()
}

// HealthAddr returns the address for probes, or nil.
func (s *Server) HealthAddr() net.Addr {
	if s.probed == nil {
		return nil
	}
	return s.probed.Addr()
}

// Cluster returns the identity of the cluster, 16 hexadecimal digits.
func (s *Server) Cluster() string { return s.identity }

// Config returns the configuration with its defaults.
func (s *Server) Config() config.Server { return s.cfg }

// Leader returns the id of the leader, or 0 if none is known.
func (s *Server) Leader() uint64 { return s.forward.Leader() }

// Node returns the node behind the server.
func (s *Server) Node() *node.Node { return s.node }

// Done is closed when the server has stopped, by Stop or by itself.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns why the server stopped by itself, once Done is closed.
func (s *Server) Err() error { return s.err }

// Stop withdraws the requests that wait in queues for callers who cannot find them again, hands leadership
// over, if this server has it, says farewell to the clients, and stops. When ctx ends it no longer waits for any of that. It returns Err.
func (s *Server) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() {
		close(s.leaving)
		select {
		case <-s.waiting.gone():
		case <-time.After(partingTime):
		case <-ctx.Done():
		}
		_ = s.node.Stop(ctx) // finish returns its error
	})
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		s.grpc.Stop()
		s.vouched.Stop()
		s.http.Close()
		<-s.done
		return s.err
	}
}

// startAudit starts to write the audit log.
func (s *Server) startAudit() *auditlog.Log {
	return auditlog.Start(s.ctx, auditlog.Config{
		Server: s.cfg.ID, Version: s.cfg.Version, Path: s.cfg.AuditLog, Required: s.cfg.AuditRequired, Holds: s.holds, AnchorEvery: s.cfg.AnchorEvery,
		Node: s.node, Newest: s.newestRecord, Log: s.log,
	})
}

// newestRecord returns the number of the newest audit record of the cluster, or after if that is newer.
func (s *Server) newestRecord(ctx context.Context, after uint64) (uint64, error) {
	return query.NewestRecord(authn.WithCaller(ctx, authn.Local(s.cfg.ID)), s.forward, after)
}

// Reload reads the TLS files again; the server also does so by itself when they change. New
// connections use the new files; present connections stay, unless only a removed authority
// has signed their certificate. A pair that does not fit together or has expired is refused, and the
// previous one stays in use.
func (s *Server) Reload() error {
	if s.certs.Clients == nil && s.certs.PeerServer == nil {
		return nil
	}
	closed, err := s.certs.Reload(s.log)
	s.metrics.Reloaded(err)
	record := registry.Record{Kind: "certificates", Reason: fmt.Sprintf("connections closed: %d", closed)}
	if err != nil {
		record = registry.Record{Kind: "certificates", Result: registry.Invalid, Reason: err.Error()}
	}
	s.audit.Note(record)
	return err
}

// Reopen opens the audit log again, after the file was renamed.
func (s *Server) Reopen() { s.audit.Reopen() }

// newGate returns what decides which calls are served.
func (s *Server) newGate() *admission.Gate {
	return admission.New(admission.Config{
		Server: s.cfg.ID, Node: s.node, Open: s.cfg.Access == config.AccessOpen, Exposed: s.exposed(), Timeout: s.cfg.IOTimeout,
		Ask: func(ctx context.Context) (*api.AccessResponse, error) {
			return s.admin.Access(ctx, &api.AccessRequest{Ask: &api.AccessRequest_Check{Check: &api.CheckAccess{Verb: access.Status.String()}}})
		},
		Go: s.tasks.Go, Metrics: s.metrics, Audit: s.audit,
	})
}

func (s *Server) newStreams() *attach.Streams {
	return attach.New(s.ctx, attach.Config{
		Cluster: s.identity, Server: s.cfg.ID, Node: s.node, Forward: s.forward, Heartbeat: s.cfg.Heartbeat, Election: s.cfg.Election,
		Metrics: s.metrics, Audit: s.audit, Log: s.log, Go: s.tasks.Go, Leaving: s.leaving, Divert: s.divert,
	})
}

// exposed reports whether other machines can reach the address for clients.
func (s *Server) exposed() bool { return !config.Loopback(s.Addr().String()) }

// measured returns what the metrics are about.
func (s *Server) measured() metrics.Source {
	of := metrics.Source{
		ID: s.cfg.ID, Version: s.cfg.Version, Node: s.node, Dir: s.cfg.Data, AccessMode: func() access.Mode { return s.gate.Mode() }, Ready: s.health.probablyReady,
		Certificates: s.certs.Expiries, Audit: s.audit,
	}
	if s.cfg.Memory {
		of.Dir = ""
	}
	return of
}

func (s *Server) stopping() bool { return ended(s.leaving) || ended(s.node.Done()) }

// finish closes everything once the node has stopped.
func (s *Server) finish() {
	<-s.node.Done()
	s.err = s.node.Err()
	stop := registry.Record{Kind: "stop", Reason: "version " + s.cfg.Version, Server: s.cfg.ID}
	if s.err != nil {
		stop.Reason += ": " + s.err.Error()
	}
	s.audit.Note(stop)
	s.cancel()
	s.splitter.Close()
	s.end()
	s.tasks.Wait()
	s.audit.Wait()
	s.forward.Close()
	s.serving.Wait()
	close(s.done)
}

// end lets calls end by themselves for some time, and then cancels them.
func (s *Server) end() {
	ctx, cancel := context.WithTimeout(context.Background(), partingTime)
	defer cancel()
	kill := context.AfterFunc(ctx, func() {
		s.grpc.Stop()
		s.vouched.Stop()
		s.http.Close()
	})
	defer kill()
	var ending sync.WaitGroup
	ending.Go(s.grpc.GracefulStop)
	ending.Go(s.vouched.GracefulStop)
	ending.Go(func() { _ = s.http.Shutdown(ctx) })
	if s.pprof != nil {
		ending.Go(func() { s.pprof.Close() })
	}
	if s.probes != nil {
		ending.Go(func() { s.probes.Close() })
	}
	ending.Wait()
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

package embed

import (
	"context"
	"net"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/service/server"
)

// Server is the server in this process. Its methods may be called by many goroutines at once.
type Server struct {
	server *server.Server
	client conclave.Config
}

// ClientConfig returns the settings of the client that Open has made. A program that needs another
// session on the same server changes TTL or Program and passes them to conclave.Dial. It must close that
// client before the one of Open, which stops the server.
func (s *Server) ClientConfig() conclave.Config { return s.client }

// ID returns the id of the server in its cluster.
func (s *Server) ID() uint64 { return s.server.Config().ID }

// Cluster returns the identity of the cluster, 16 hexadecimal digits.
func (s *Server) Cluster() string { return s.server.Cluster() }

// Leader returns the id of the leader, or 0 if the server knows none.
func (s *Server) Leader() uint64 { return s.server.Leader() }

// State says in a few words what the server is doing, such as "leader in term 3".
func (s *Server) State() string { return s.server.State() }

// Alive returns an error if the main loop of the server takes no call before ctx ends. The loop takes
// calls even while the disk hangs, and while no leader is known.
func (s *Server) Alive(ctx context.Context) error { return s.server.Alive(ctx) }

// Addr returns the address for clients at which the server listens.
func (s *Server) Addr() net.Addr { return s.server.Addr() }

// Advertised returns the address for clients that the server tells them, "host:port".
func (s *Server) Advertised() string { return s.server.Config().Advertise }

// PeerAddr returns the address for other servers.
func (s *Server) PeerAddr() net.Addr { return s.server.PeerAddr() }

// HealthAddr returns the address for probes, or nil if Member.HealthListen is empty.
func (s *Server) HealthAddr() net.Addr { return s.server.HealthAddr() }

// PprofAddr returns the address of the profiles, or nil if Member.Pprof is empty.
func (s *Server) PprofAddr() net.Addr { return s.server.PprofAddr() }

// Reload reads the TLS files again. The server also does so by itself when they change. New
// connections use the new files; present ones stay, unless only a removed authority has signed their
// certificate. If a pair of files does not fit together or has expired, Reload returns an error, and
// the previous pair stays in use.
func (s *Server) Reload() error { return s.server.Reload() }

// ReopenAuditLog makes the server open the audit log again, after its file was renamed. It does not
// wait for that.
func (s *Server) ReopenAuditLog() { s.server.Reopen() }

// Done is closed when the server has stopped: by Stop, or by itself, for example because its disk
// failed.
func (s *Server) Done() <-chan struct{} { return s.server.Done() }

// Err returns why the server stopped by itself, once Done is closed; nil if it was told to.
func (s *Server) Err() error { return s.server.Err() }

// Stop hands leadership over, if this server has it, says farewell to its clients, and stops. When ctx
// ends it no longer waits for either. It returns Err. Client.Close does the same after it has ended the
// session.
func (s *Server) Stop(ctx context.Context) error { return s.server.Stop(ctx) }

// stop is Stop with the time that Client.Close has for it.
func (s *Server) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return s.Stop(ctx)
}

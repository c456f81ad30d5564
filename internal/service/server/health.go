package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// readyTimeout is how long a probe waits for the node, which may be busy, to find out whether
// the server is ready.
const readyTimeout = 2 * time.Second

// healthz reports whether the process works at all; if not, it should be restarted.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	if s.stopping() {
		http.Error(w, fmt.Sprintf("server %d is stopping", s.cfg.ID), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// readyz reports whether this server can serve calls now.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if err := s.ready(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

func (s *Server) ready(ctx context.Context) error {
	if s.stopping() {
		return fmt.Errorf("server %d is stopping", s.cfg.ID)
	}
	if stall := s.node.Stall(); stall.What != "" {
		return fmt.Errorf("server %d: %v", s.cfg.ID, stall)
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	var leader, applied uint64
	err := s.node.View(ctx, func(r *replica.Replica) { leader, applied = r.Leader(), r.Applied() })
	switch {
	case errors.Is(err, node.ErrNotLeader):
		return fmt.Errorf("server %d waits for other servers to find out its role", s.cfg.ID)
	case err != nil:
		return fmt.Errorf("server %d does not answer: %w", s.cfg.ID, err)
	case leader == 0:
		return fmt.Errorf("server %d knows no leader", s.cfg.ID)
	case applied == 0:
		return fmt.Errorf("server %d waits for a snapshot from the leader", s.cfg.ID)
	}
	return nil
}

// Alive returns an error if the main loop of this server does not take a call. It takes calls
// even while its disk hangs, while no leader is known, and while it waits for other servers to
// find out its role.
func (s *Server) Alive(ctx context.Context) error {
	if err := s.node.View(ctx, func(*replica.Replica) {}); err != nil && !errors.Is(err, node.ErrNotLeader) {
		return err
	}
	return nil
}

// State returns what this server is doing, for people.
func (s *Server) State() string {
	known := s.node.Metrics()
	leader, term := known.Leader.Load(), known.Stats().Term
	switch {
	case s.node.Stall().What != "":
		return s.node.Stall().What + " does not end"
	case leader == 0:
		return "no leader is known"
	case leader == s.cfg.ID:
		return fmt.Sprintf("leader in term %d", term)
	}
	return fmt.Sprintf("follows server %d in term %d", leader, term)
}

// probablyReady is like ready, but uses only what the node publishes, so that it never waits
// for a busy node.
func (s *Server) probablyReady() bool {
	known := s.node.Metrics()
	return !s.stopping() && s.node.Stall().What == "" && known.Leader.Load() != 0 && known.Applied.Load() != 0
}

// profiles serves net/http/pprof. That package registers itself with the default mux, which
// this server does not use.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// probePages serves the address for probes, which has no TLS and asks for no proof: nothing
// that changes anything, and no name of a lock or a program.
func (s *Server) probePages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", s.metrics.Handler())
	return mux
}

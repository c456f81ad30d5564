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

// health reports to probes whether a server works.
type health struct {
	server   uint64
	node     *node.Node
	stopping func() bool
}

// healthz reports whether the process works at all; if not, it should be restarted.
func (h health) healthz(w http.ResponseWriter, _ *http.Request) {
	if h.stopping() {
		http.Error(w, fmt.Sprintf("server %d is stopping", h.server), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// readyz reports whether this server can serve calls now.
func (h health) readyz(w http.ResponseWriter, r *http.Request) {
	if err := h.ready(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

func (h health) ready(ctx context.Context) error {
	if h.stopping() {
		return fmt.Errorf("server %d is stopping", h.server)
	}
	if stall := h.node.Stall(); stall.What != "" {
		return fmt.Errorf("server %d: %v", h.server, stall)
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	var leader, applied uint64
	err := h.node.View(ctx, func(r *replica.Replica) { leader, applied = r.Leader(), r.Applied() })
	switch {
	case errors.Is(err, node.ErrNotLeader):
		return fmt.Errorf("server %d waits for other servers to find out its role", h.server)
	case err != nil:
		return fmt.Errorf("server %d does not answer: %w", h.server, err)
	case leader == 0:
		return fmt.Errorf("server %d knows no leader", h.server)
	case applied == 0:
		return fmt.Errorf("server %d waits for a snapshot from the leader", h.server)
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
func (h health) probablyReady() bool {
	known := h.node.Metrics()
	return !h.stopping() && h.node.Stall().What == "" && known.Leader.Load() != 0 && known.Applied.Load() != 0
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

// pages serves the address for probes, which has no TLS and asks for no proof: nothing
// that changes anything, and no name of a lock or a program.
func (h health) pages(metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", h.healthz)
	mux.HandleFunc("GET /readyz", h.readyz)
	mux.Handle("GET /metrics", metrics)
	return mux
}

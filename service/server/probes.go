package server

import "net/http"

// probePages serves the address for probes, which has no TLS and asks for no proof: nothing
// that changes anything, and no name of a lock or a program.
func (s *Server) probePages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", s.metricsHandler())
	return mux
}

package server

import "net/http"

// probePages are what is served at the address for probes, which asks for no proof and has
// no TLS: nothing that changes anything, and no name of a lock or of a program.
func (s *Server) probePages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", s.metricsHandler())
	return mux
}

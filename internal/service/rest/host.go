package rest

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// GuardHost protects a server that listens only on this machine against DNS rebinding: it
// lets only requests pass that name this machine or the advertised host. A foreign web page
// can resolve its own name to 127.0.0.1, and then has the same origin for the browser.
// Ports are ignored: a tunnel may use another one. The rest of a refused request may take until
// the timeout to arrive.
func GuardHost(next http.Handler, listener net.Addr, advertised string, timeout time.Duration) http.Handler {
	at, ok := listener.(*net.TCPAddr)
	if !ok || !at.IP.IsLoopback() {
		return next
	}
	names := []string{"localhost", "127.0.0.1", "::1", at.IP.String()}
	if host, _, err := net.SplitHostPort(advertised); err == nil {
		names = append(names, strings.ToLower(host))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(names, hostOf(r)) {
			next.ServeHTTP(w, r)
			return
		}
		// The rest of the body must arrive until then.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout))
		message := fmt.Sprintf("host: %.100q: this server is for this machine only; use localhost, 127.0.0.1, [::1] or the host of --advertise", r.Host)
		writeInvalid(w, http.StatusMisdirectedRequest, message)
	})
}

// hostOf returns the host that a request is for, without its port.
func hostOf(r *http.Request) string {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host, _, _ = strings.Cut(strings.Trim(host, "[]"), "%") // the zone of an IPv6 address
	return strings.ToLower(host)
}

// Package host serves the lab's page and its engine on loopback, to the one person who
// started it: conclave lab. Every request must carry the token that the URL holds, name
// the address as its host, and come from the page itself, so that no other page and no
// other user of the machine reaches the engine.
package host

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/conclave-io/conclave/lab/engine"
)

// Options say what is served.
type Options struct {
	Page   http.Handler // the lab is at /lab/
	Build  string       // version of the program
	Cores  int
	Memory uint64                 // bytes that runs may take
	Room   func(bytes int64) bool // as that of engine.Options
}

// Limits of a host.
const (
	maxWorkers = 16
	idleTime   = 15 * time.Minute
)

// Host is a server of the lab.
type Host struct {
	options  Options
	listener net.Listener
	token    string
	hosts    []string // by which the page may be called

	mu      sync.Mutex
	workers map[string]*worker
	ended   sync.WaitGroup
}

// New returns a host that serves connections to the listener, which must be on loopback.
func New(listener net.Listener, o Options) (*Host, error) {
	address, is := listener.Addr().(*net.TCPAddr)
	if !is || !address.IP.IsLoopback() {
		return nil, fmt.Errorf("host: %s is not on loopback", listener.Addr())
	}
	own := listener.Addr().String()
	return &Host{
		options: o, listener: listener, token: rand.Text(), workers: map[string]*worker{},
		hosts: []string{own, fmt.Sprintf("localhost:%d", address.Port)},
	}, nil
}

// URL returns the address of a page of the lab, such as 1/gallery, with the token.
func (h *Host) URL(place string) string {
	separator := "?"
	if strings.Contains(place, "?") {
		separator = "&"
	}
	return fmt.Sprintf("http://%s/lab/#%s%sengine=%s", h.hosts[0], place, separator, h.token)
}

// Serve serves until the context is done.
func (h *Host) Serve(ctx context.Context) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // Serve returns its error
	defer stop()
	err := server.Serve(h.listener)
	h.endAll()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("host: %w", err)
}

// ServeHTTP implements http.Handler.
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The page has a policy of its own; a browser obeys both.
	w.Header().Add("Content-Security-Policy", "frame-ancestors 'none'")
	switch {
	case !h.isOwn(r.Host):
		http.Error(w, "this server has another name", http.StatusForbidden)
	case !h.isOwnOrigin(r.Header.Get("Origin")):
		http.Error(w, "another page may not call the engine", http.StatusForbidden)
	case r.URL.Path == "/lab/call":
		h.call(w, r)
	case r.URL.Path == "/":
		http.Redirect(w, r, "/lab/", http.StatusFound)
	default:
		h.options.Page.ServeHTTP(w, r)
	}
}

func (h *Host) isOwn(host string) bool { return host == h.hosts[0] || host == h.hosts[1] }

func (h *Host) isOwnOrigin(origin string) bool {
	host, is := strings.CutPrefix(origin, "http://")
	return origin == "" || is && h.isOwn(host)
}

var workerName = regexp.MustCompile(`^[a-zA-Z0-9-]{1,32}$`)

// call answers a request by frames, or ends a worker.
func (h *Host) call(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("worker")
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case subtle.ConstantTimeCompare([]byte(token), []byte(h.token)) != 1:
		http.Error(w, "wrong token: open the URL that conclave lab has printed", http.StatusUnauthorized)
	case !workerName.MatchString(name):
		http.Error(w, fmt.Sprintf("worker: %.40q: must be 1 to 32 letters, digits or hyphens", name), http.StatusBadRequest)
	case r.Method == http.MethodDelete:
		h.end(name)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPost:
		h.answer(w, r, name)
	default:
		w.Header().Set("Allow", "POST, DELETE")
		http.Error(w, "only POST and DELETE", http.StatusMethodNotAllowed)
	}
}

func (h *Host) answer(w http.ResponseWriter, r *http.Request, name string) {
	var request engine.Request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, engine.MostRequestSize)).Decode(&request); err != nil {
		http.Error(w, "the request is not what it must be: "+err.Error(), http.StatusBadRequest)
		return
	}
	worker := h.worker(name)
	if worker == nil {
		http.Error(w, fmt.Sprintf("there are %d workers already; close a page of the lab", maxWorkers), http.StatusServiceUnavailable)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	flush := http.NewResponseController(w)
	worker.ask(r.Context(), &request, func(piece []byte) error {
		if _, err := w.Write(piece); err != nil {
			return err
		}
		return flush.Flush()
	})
}

// worker returns the worker of a name, a new one if there is none, or nil if there are
// too many.
func (h *Host) worker(name string) *worker {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.workers[name]; w != nil {
		return w
	}
	if len(h.workers) == maxWorkers {
		return nil
	}
	w := newWorker(h.options)
	h.workers[name] = w
	h.ended.Go(func() {
		w.work()
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.workers[name] == w {
			delete(h.workers, name)
		}
	})
	return w
}

func (h *Host) end(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.workers[name]; w != nil {
		delete(h.workers, name)
		w.end()
	}
}

func (h *Host) endAll() {
	h.mu.Lock()
	for _, w := range h.workers {
		w.end()
	}
	h.mu.Unlock()
	h.ended.Wait()
}

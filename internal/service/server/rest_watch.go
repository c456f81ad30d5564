package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/kit/wait"
	"github.com/conclave-io/conclave/internal/service/feed"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// keepAlive is how often a stream without news sends a comment, so that proxies do not
// consider the connection dead.
const keepAlive = 15 * time.Second

// errEnough ends an observation that has got what it needs.
var errEnough = errors.New("enough")

func (s service) getElection(r *http.Request) (any, error) {
	ctx, cancel := context.WithTimeout(r.Context(), defaultDeadline)
	defer cancel()
	var seen *api.Observation
	err := s.follow(ctx, r.PathValue("name"), func(o *api.Observation) error {
		seen = o
		return errEnough
	})
	if !errors.Is(err, errEnough) {
		return nil, err
	}
	return electionToJSON(seen), nil
}

// follow observes an election on the current leader until send fails or no leader is found
// for the default deadline.
func (s *Server) follow(ctx context.Context, name string, send func(*api.Observation) error) error {
	if problem := registry.ValidateName(name); problem != "" {
		return status.Error(codes.InvalidArgument, problem)
	}
	var last *api.Observation
	news := func(o *api.Observation) error {
		if last != nil && !feed.Differ(last, o) {
			return nil
		}
		last = o
		return send(o)
	}
	here := func(ctx context.Context) error { return s.observe(ctx, name, news) }
	return streamed(ctx, s, here, api.ConclaveClient.Observe, &api.ObserveRequest{Name: name}, news)
}

// watchElection streams the states of an election as server-sent events.
func (s *Server) watchElection(w http.ResponseWriter, r *http.Request) {
	s.stream(w, r, func(ctx context.Context, event tell) error {
		return s.follow(ctx, r.PathValue("name"), func(o *api.Observation) error {
			return event("election", electionToJSON(o))
		})
	})
}

// changesJSON has the changed resources under a prefix.
type changesJSON struct {
	Resources []resourceJSON `json:"resources"`
	Gone      []string       `json:"gone"`
	// Reset means to forget everything received before. More means that the rest of the
	// holds follows.
	Reset bool `json:"reset,omitempty"`
	More  bool `json:"more,omitempty"`
}

// watchClass returns the function that streams the resources of a class under a prefix as
// server-sent events: first those that are held, then each change.
func (s *Server) watchClass(class api.Class) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := newParameters(r)
		prefix := q.text("prefix")
		if err := q.check(); err != nil {
			writeError(w, err)
			return
		}
		s.stream(w, r, func(ctx context.Context, event tell) error {
			return s.changes(ctx, &api.WatchRequest{Class: class, Prefix: prefix}, "changes", event)
		})
	}
}

// tell sends an event with a name.
type tell func(kind string, data any) error

const (
	// changesEvery is the least time between two messages about changes, on a stream of everything.
	changesEvery = 100 * time.Millisecond
	// mostNames is the most names that such a stream reports.
	mostNames = 10_000
	// retryEvery is the pause before it searches for the leader again.
	retryEvery = time.Second
)

// watchAll streams the state of the servers, and the locks and elections under prefixes,
// as server-sent events. It continues if some part is unavailable for a while.
func (s *Server) watchAll(w http.ResponseWriter, r *http.Request) {
	q := newParameters(r)
	every := q.duration("status", 500*time.Millisecond, time.Minute)
	var parts []func(ctx context.Context, event tell)
	if every != 0 {
		parts = append(parts, func(ctx context.Context, event tell) { s.tellSamples(ctx, every, event) })
	}
	for key, class := range map[string]api.Class{"locks": api.Class_CLASS_LOCK, "elections": api.Class_CLASS_ELECTION} {
		if q.given(key) {
			req := &api.WatchRequest{Class: class, Prefix: q.text(key), Waiters: 1, IntervalNs: changesEvery.Nanoseconds(), Most: mostNames}
			parts = append(parts, func(ctx context.Context, event tell) { s.tellChanges(ctx, req, key, event) })
		}
	}
	if len(parts) == 0 {
		q.fail("status, locks, elections: missing; set at least one of them")
	}
	if err := q.check(); err != nil {
		writeError(w, err)
		return
	}
	s.stream(w, r, func(ctx context.Context, event tell) error {
		var telling sync.WaitGroup
		for _, part := range parts {
			telling.Go(func() { part(ctx, event) })
		}
		telling.Wait()
		if s.stopping() {
			return s.spoken(ctx, node.ErrStopped)
		}
		return s.spoken(ctx, context.Cause(ctx))
	})
}

// lackJSON reports that a part of the stream is unavailable, and why.
type lackJSON struct {
	Part    string `json:"part"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func lack(part string, err error) lackJSON {
	return lackJSON{part, api.MeaningOf(api.CodeOf(err)).Name, api.Reason(err)}
}

// tellSamples sends the state of the servers until ctx ends.
func (s *Server) tellSamples(ctx context.Context, every time.Duration, event tell) {
	for ctx.Err() == nil {
		begun := time.Now()
		if body, err := s.sample(ctx); err == nil {
			_ = event("status", body) // fails when ctx ends
		} else if ctx.Err() == nil {
			_ = event("lack", lack("status", err))
		}
		_ = wait.For(ctx, max(every-time.Since(begun), time.Millisecond))
	}
}

// tellChanges sends the holds under a prefix, and then changes, until ctx ends or there are
// too many names. While there is no leader it reports that from time to time.
func (s *Server) tellChanges(ctx context.Context, req *api.WatchRequest, part string, event tell) {
	for ctx.Err() == nil {
		err := s.changes(ctx, req, part, event)
		if err == nil || ctx.Err() != nil {
			continue
		}
		_ = event("lack", lack(part, err))
		if api.CodeOf(err) == api.Code_CODE_EXHAUSTED {
			return
		}
		_ = wait.For(ctx, retryEvery)
	}
}

// changes sends the holds under a prefix, and then changes, as events with the name kind.
func (s *Server) changes(ctx context.Context, req *api.WatchRequest, kind string, event tell) error {
	send := func(c *api.Changes) error {
		return event(kind, changesJSON{listed(c.GetResources(), resourceToJSON), append([]string{}, c.GetGone()...), c.GetReset_(), c.GetMore()})
	}
	here := func(ctx context.Context) error { return s.watch(ctx, req, send) }
	return streamed(ctx, s, here, api.ConclaveClient.Watch, req, send)
}

// stream writes what produce sends as server-sent events, with a comment from time to time
// to keep the connection alive.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, produce func(ctx context.Context, event tell) error) {
	type news struct {
		kind string
		data any
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	states := make(chan news)
	ended := make(chan error, 1)
	s.tasks.Go(func() {
		ended <- produce(ctx, func(kind string, data any) error {
			select {
			case states <- news{kind, data}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	out := &events{w: w, control: http.NewResponseController(w), ioTimeout: s.cfg.ioTimeout}
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	for {
		var err error
		select {
		case n := <-states:
			err = out.event(n.kind, n.data)
		case <-alive.C:
			err = out.comment()
		case err := <-ended:
			out.fail(err)
			return
		}
		if err != nil {
			return
		}
	}
}

// events writes server-sent events.
type events struct {
	w         http.ResponseWriter
	control   *http.ResponseController
	ioTimeout time.Duration
	begun     bool
}

func (e *events) event(kind string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return e.write("event: %s\ndata: %s\n\n", kind, text)
}

func (e *events) comment() error { return e.write(": still here\n\n") }

func (e *events) write(format string, args ...any) error {
	if !e.begun {
		e.begun = true
		e.w.Header().Set("Content-Type", "text/event-stream")
		e.w.Header().Set("Cache-Control", "no-store")
		e.w.Header().Set("X-Accel-Buffering", "no")
	}
	// A reader that has not read for so long is gone.
	if err := e.control.SetWriteDeadline(time.Now().Add(e.ioTimeout)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(e.w, format, args...); err != nil {
		return err
	}
	return e.control.Flush()
}

// fail reports why the stream ends.
func (e *events) fail(err error) {
	if !e.begun {
		writeError(e.w, err)
		return
	}
	meaning := api.MeaningOf(api.CodeOf(err))
	_ = e.event("end", problem{Code: meaning.Name, Message: api.Reason(err)})
}

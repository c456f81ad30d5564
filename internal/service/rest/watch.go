package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/conclave-io/conclave/internal/kit/wait"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/api/jsonform"
)

// keepAlive is how often a stream without news sends a comment, so that proxies do not
// consider the connection dead.
const keepAlive = 15 * time.Second

// errEnough ends an observation that has got what it needs.
var errEnough = errors.New("enough")

func (h *Handler) getElection(r *http.Request) (any, error) {
	ctx, cancel := context.WithTimeout(r.Context(), defaultDeadline)
	defer cancel()
	var seen *api.Observation
	err := h.server.Follow(ctx, r.PathValue("name"), func(o *api.Observation) error {
		seen = o
		return errEnough
	})
	if !errors.Is(err, errEnough) {
		return nil, err
	}
	return jsonform.ElectionOf(seen), nil
}

// watchElection streams the states of an election as server-sent events.
func (h *Handler) watchElection(w http.ResponseWriter, r *http.Request) {
	h.stream(w, r, func(ctx context.Context, event tell) error {
		return h.server.Follow(ctx, r.PathValue("name"), func(o *api.Observation) error {
			return event("election", jsonform.ElectionOf(o))
		})
	})
}

// watchClass returns the function that streams the resources of a class under a prefix as
// server-sent events: first those that are held, then each change.
func (h *Handler) watchClass(class api.Class) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := newParameters(r)
		prefix := q.text("prefix")
		if err := q.check(); err != nil {
			WriteError(w, err)
			return
		}
		h.stream(w, r, func(ctx context.Context, event tell) error {
			return h.changes(ctx, &api.WatchRequest{Class: class, Prefix: prefix}, "changes", event)
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
func (h *Handler) watchAll(w http.ResponseWriter, r *http.Request) {
	q := newParameters(r)
	every := q.duration("status", 500*time.Millisecond, time.Minute)
	var parts []func(ctx context.Context, event tell)
	if every != 0 {
		parts = append(parts, func(ctx context.Context, event tell) { h.tellSamples(ctx, every, event) })
	}
	for key, class := range map[string]api.Class{"locks": api.Class_CLASS_LOCK, "elections": api.Class_CLASS_ELECTION} {
		if q.given(key) {
			req := &api.WatchRequest{Class: class, Prefix: q.text(key), Waiters: 1, IntervalNs: changesEvery.Nanoseconds(), Most: mostNames}
			parts = append(parts, func(ctx context.Context, event tell) { h.tellChanges(ctx, req, key, event) })
		}
	}
	if len(parts) == 0 {
		q.fail("status, locks, elections: missing; set at least one of them")
	}
	if err := q.check(); err != nil {
		WriteError(w, err)
		return
	}
	h.stream(w, r, func(ctx context.Context, event tell) error {
		var telling sync.WaitGroup
		for _, part := range parts {
			telling.Go(func() { part(ctx, event) })
		}
		telling.Wait()
		return h.server.Ended(ctx)
	})
}

func lack(part string, err error) jsonform.Lack {
	return jsonform.Lack{Part: part, Code: api.MeaningOf(api.CodeOf(err)).Name, Message: api.Reason(err)}
}

// tellSamples sends the state of the servers until ctx ends.
func (h *Handler) tellSamples(ctx context.Context, every time.Duration, event tell) {
	for ctx.Err() == nil {
		begun := time.Now()
		if body, err := h.server.Sample(ctx); err == nil {
			_ = event("status", body) // fails when ctx ends
		} else if ctx.Err() == nil {
			_ = event("lack", lack("status", err))
		}
		_ = wait.For(ctx, max(every-time.Since(begun), time.Millisecond))
	}
}

// tellChanges sends the holds under a prefix, and then changes, until ctx ends or there are
// too many names. While there is no leader it reports that from time to time.
func (h *Handler) tellChanges(ctx context.Context, req *api.WatchRequest, part string, event tell) {
	for ctx.Err() == nil {
		err := h.changes(ctx, req, part, event)
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
func (h *Handler) changes(ctx context.Context, req *api.WatchRequest, kind string, event tell) error {
	return h.server.Changes(ctx, req, func(c *api.Changes) error { return event(kind, jsonform.ChangesOf(c)) })
}

// stream writes what produce sends as server-sent events, with a comment from time to time
// to keep the connection alive.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, produce func(ctx context.Context, event tell) error) {
	type news struct {
		kind string
		data any
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	states := make(chan news)
	ended := make(chan error, 1)
	h.server.Go(func() {
		ended <- produce(ctx, func(kind string, data any) error {
			select {
			case states <- news{kind, data}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	out := &events{w: w, control: http.NewResponseController(w), ioTimeout: h.cfg.IOTimeout}
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
		WriteError(e.w, err)
		return
	}
	meaning := api.MeaningOf(api.CodeOf(err))
	_ = e.event("end", jsonform.Error{Code: meaning.Name, Message: api.Reason(err)})
}

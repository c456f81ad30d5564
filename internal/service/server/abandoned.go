package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/kit/wait"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/stream"
)

const (
	// withdrawal is how long a server tries to withdraw the request of a caller that no
	// longer waits, before it does so again later.
	withdrawal = 5 * time.Second
	// withdrawEvery is the time between two attempts later.
	withdrawEvery = time.Second
	// mostAbandoned bounds the requests to withdraw later.
	mostAbandoned = 10_000
)

// abandoned withdraws requests to acquire for which nobody waits any more. What cannot be withdrawn because
// no quorum answers is withdrawn later: as soon as one does, such a request would wait in its queue again,
// or hold, without anybody who knows.
type abandoned struct {
	// ctx ends when the server stops.
	ctx context.Context
	log *slog.Logger
	// carryOut has a request carried out, and number returns a number for one.
	carryOut func(context.Context, *api.Request) *api.Reply
	number   func() uint64

	mu    sync.Mutex
	list  []abandonedRequest // to withdraw later, the oldest first
	added chan struct{}
}

type abandonedRequest struct {
	who stream.Caller
	req *api.Request
}

// add adds a request to withdraw later, and reports whether there is room for it.
func (a *abandoned) add(one abandonedRequest) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.list) >= mostAbandoned {
		return false
	}
	a.list = append(a.list, one)
	select {
	case a.added <- struct{}{}:
	default: // it already has a value
	}
	return true
}

// oldest returns the oldest request to withdraw later.
func (a *abandoned) oldest() (one abandonedRequest, is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.list) == 0 {
		return one, false
	}
	return a.list[0], true
}

// done removes the oldest request.
func (a *abandoned) done() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = a.list[1:]
}

// withdraw removes a request from its queue, or releases the hold if it was granted after all. A request
// that was never carried out never will be. It reports whether that was done. If not, the server
// continues to try.
func (a *abandoned) withdraw(who stream.Caller, req *api.Request) bool {
	why, again := a.try(who, req)
	if why == "" {
		return true
	}
	// A request that was passed on is withdrawn by the server that has passed it on.
	again = again && !who.Vouched && a.add(abandonedRequest{who, req})
	if a.ctx.Err() == nil {
		a.log.Warn("cannot withdraw an abandoned request", "session", who.Session(req.GetSession()), "sequence", req.GetSequence(), "why", why, "tries_again", again)
	}
	return false
}

// try returns why a request could not be withdrawn, and whether that may change.
func (a *abandoned) try(who stream.Caller, req *api.Request) (why string, again bool) {
	ctx, cancel := context.WithTimeout(authn.WithCaller(a.ctx, who), withdrawal)
	defer cancel()
	hold := req.GetSequence()
	numbered := func(op *api.Request) *api.Request {
		op.Session, op.Sequence, op.Home = req.GetSession(), a.number(), req.GetHome()
		// Use the caller's own mark if it numbers its requests itself.
		op.Low = min(req.GetLow(), lowFor(op.Sequence))
		return op
	}
	reply := a.carryOut(ctx, numbered(&api.Request{Op: &api.Request_Cancel{Cancel: &api.Cancel{Hold: hold}}}))
	if reply.GetCode() == api.Code_CODE_OK && reply.GetFence() != 0 {
		reply = a.carryOut(ctx, numbered(&api.Request{Op: &api.Request_Release{Release: &api.Release{Hold: hold, Unused: true}}}))
	}
	switch reply.GetCode() {
	case api.Code_CODE_OK, api.Code_CODE_NOT_HELD, api.Code_CODE_SESSION_GONE:
		return "", false
	case api.Code_CODE_UNAVAILABLE, api.Code_CODE_NOT_LEADER:
		again = true
	}
	return reply.GetMessage(), again
}

// run withdraws what could not be withdrawn at once, until the server stops.
func (a *abandoned) run() {
	for {
		select {
		case <-a.added:
		case <-a.ctx.Done():
			return
		}
		for one, is := a.oldest(); is; one, is = a.oldest() {
			if _, again := a.try(one.who, one.req); !again {
				a.done()
			} else if wait.For(a.ctx, withdrawEvery) != nil {
				return
			}
		}
	}
}

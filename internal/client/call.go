package client

import (
	"context"
	"errors"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
)

// pending is a call that a goroutine waits for.
type pending struct {
	keeps []keep       // of a call to acquire: what the caller keeps while it waits
	done  chan outcome // receives the outcome once
}

// outcome is how a call ended.
type outcome struct {
	reply *api.Reply
	hold  *Hold // of a call to acquire that was granted
	err   error
	// known and attempts are set for a call that was withdrawn, as in Interrupted.
	known    bool
	attempts []Attempt
}

// do has a call carried out, and returns its outcome. If ctx ends first the call is withdrawn: it
// then ends with line.ErrWithdrawn, unless its outcome was faster.
func (c *Conn) do(ctx context.Context, call *line.Call, keeps []keep) outcome {
	done := make(chan outcome, 1)
	call.Data = &pending{keeps, done}
	c.mail.calls.Add(1)
	if !c.post(line.Input{Kind: line.Submit, Call: call}) {
		return outcome{err: line.ErrClosed}
	}
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
		c.post(line.Input{Kind: line.Withdraw, Call: call})
		return <-done
	}
}

// interrupted returns the error of a call that was withdrawn because ctx had ended.
func interrupted(ctx context.Context, o outcome) error {
	return &Interrupted{Known: o.known, Attempts: o.attempts, Err: endOf(ctx)}
}

// failure returns why a call has no reply, or nil.
func failure(ctx context.Context, o outcome) error {
	if errors.Is(o.err, line.ErrWithdrawn) {
		return interrupted(ctx, o)
	}
	return o.err
}

// Ready opens the session, unless it is open. The error is that of Do.
func (c *Conn) Ready(ctx context.Context) error {
	return failure(ctx, c.do(ctx, &line.Call{}, nil))
}

// Do has a request carried out in the session, which it opens if there is none. The error is
// an *Interrupted, a *Rejected, line.ErrClosed, or a *line.Refused if the session cannot be opened.
func (c *Conn) Do(ctx context.Context, request *api.Request) (*api.Reply, error) {
	o := c.do(ctx, &line.Call{Op: request}, nil)
	switch {
	case o.err != nil:
		return nil, failure(ctx, o)
	case o.reply.GetCode() != api.Code_CODE_OK:
		return nil, &Rejected{o.reply}
	}
	return o.reply, nil
}

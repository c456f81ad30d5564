package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/api"
)

// Errors are the errors of the public API that this package passes on without knowing more.
type Errors struct {
	// Lost and Released are the causes with which the context of a hold ends that was lost or
	// given up. Revoked makes the cause if the holder is asked to leave.
	Lost, Released error
	Revoked        func(reason string) error
	// Call makes the error of a call that failed from an error of this package.
	Call func(op, name string, err error) error
}

// Attempt is the result of trying one server.
type Attempt struct {
	Server string
	Err    error
}

// errNoAnswer is the result of a server that has not answered yet.
var errNoAnswer = errors.New("no answer")

// Unattached is the error of Dial. Err is the end of its context, or why every server has failed
// permanently.
type Unattached struct {
	Attempts []Attempt
	Err      error
}

func (e *Unattached) Error() string { return "no server to attach to: " + e.Err.Error() }

func (e *Unattached) Unwrap() error { return e.Err }

// Interrupted is the error of a call whose context ended before its outcome.
type Interrupted struct {
	// Known means that the cluster had acknowledged the call and still answers. Otherwise Attempts
	// says what happened with each server.
	Known    bool
	Attempts []Attempt
	// Err is the end of the context, with its cause.
	Err error
}

func (e *Interrupted) Error() string { return e.Err.Error() }

func (e *Interrupted) Unwrap() error { return e.Err }

// endOf returns the end of a context, with its cause.
func endOf(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		err = fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}

// Rejected is the error of a request that the servers did not carry out.
type Rejected struct{ Reply *api.Reply }

func (e *Rejected) Error() string { return e.Reply.GetMessage() }

// NotHeld is the error of a request about a hold that has ended.
type NotHeld struct {
	// Cause is the cause with which the context of the hold ended. It is nil if the servers have
	// ended the session during the request.
	Cause error
}

func (e *NotHeld) Error() string { return "not held" }

func (e *NotHeld) Unwrap() error { return e.Cause }

// Summary says what became of each server that was tried, in order. Servers with the same result are
// named together: "a:1, b:1: connection refused; c:1: no such host".
func Summary(tried []Attempt) string {
	var results []string
	servers := make(map[string][]string)
	for _, a := range tried {
		result := fmt.Sprint(a.Err)
		if servers[result] == nil {
			results = append(results, result)
		}
		servers[result] = append(servers[result], a.Server)
	}
	for i, result := range results {
		results[i] = strings.Join(servers[result], ", ") + ": " + result
	}
	return strings.Join(results, "; ")
}

// Says reports whether a Summary has the text of err.
func Says(tried []Attempt, err error) bool {
	return slices.ContainsFunc(tried, func(a Attempt) bool { return fmt.Sprint(a.Err) == fmt.Sprint(err) })
}

package conclave

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client"
	"github.com/conclave-io/conclave/internal/client/line"
	"github.com/conclave-io/conclave/internal/client/pool"
)

// The errors that callers tell apart with errors.Is.
var (
	// ErrHeld says that a try found the lock taken. The error that matches it
	// is a *HeldError, which names the holder.
	ErrHeld = errors.New("the lock is held")

	// ErrLost says that the session's deadline passed, or that the server ended
	// the session: from then on another process may hold what this one held.
	// It is also the cause of a handle's Context that ended so.
	ErrLost = errors.New("the hold is lost: its session was not renewed in time, or was ended by the server")

	// ErrRevoked says that the holder was asked to leave, by an operator or for a
	// candidate of higher priority. The error that matches it is a
	// *RevokedError, which says why. Nobody else gets the hold before it is
	// given up, or one TTL has passed: stop, and then call Unlock or Resign.
	ErrRevoked = errors.New("the holder was asked to leave")

	// ErrNotFound says that nobody holds what was to be revoked, or that no such
	// candidate waits.
	ErrNotFound = errors.New("not found")

	// ErrReleased is the cause of a handle's Context that ended because the
	// handle was given up by Unlock or Resign, or because its Client was closed.
	ErrReleased = errors.New("the hold was released")

	// ErrNotHeld says that a handle no longer holds what it wants to give up or
	// to change: it was released before, or lost.
	ErrNotHeld = errors.New("not held")

	// ErrClosed says that the Client was closed.
	ErrClosed = line.ErrClosed

	// ErrWrongCluster says that a server belongs to another cluster than the
	// one expected.
	ErrWrongCluster = line.ErrWrongCluster

	// ErrUnavailable says that the cluster did not answer before the context of the call
	// reached its deadline. Whether a lock is free, say, or was released, is unknown
	// then. The error that matches it is an *UnavailableError or a *DialError, which have
	// the result of each server. An error that matches only context.DeadlineExceeded
	// means that the cluster did answer: a lock is held.
	ErrUnavailable = errors.New("the cluster did not answer")

	// ErrExhausted means that a bounded queue of the server is full. Try again later.
	ErrExhausted = errors.New("a queue of the server is full")

	// ErrStateLimit means that the replicated state has reached its limit. The servers
	// accept no new sessions and locks until others end. Existing holds are not affected.
	ErrStateLimit = errors.New("the state limit of the servers is reached")

	// ErrUnauthenticated means that the servers require a proof of who this program is,
	// or refused the proof that it gave.
	ErrUnauthenticated = errors.New("the servers do not know who this program is")

	// ErrDenied means that the rules of the cluster do not allow the call.
	ErrDenied = errors.New("denied by the rules of the cluster")
)

// HeldError says who holds the lock, or leads the election, that a try did not
// get, or until when it stays closed.
type HeldError struct {
	Name   string
	Holder Holder
	// Closed is set if nobody holds the name, but it stays closed after its last hold.
	Closed *Closed
	// election tells apart what Name is the name of.
	election bool
}

// Error names the lock, and its holder as far as the server told.
func (e *HeldError) Error() string {
	h, held := e.Holder, fmt.Sprintf("lock %q is held", e.Name)
	if e.election {
		held = fmt.Sprintf("election %q is led", e.Name)
	}
	if e.Closed != nil {
		return fmt.Sprintf("conclave: %q: %v", e.Name, e.Closed)
	}
	if h.Fence == 0 {
		return "conclave: " + held
	}
	who := fmt.Sprintf("process %d (%s) on %s", h.PID, h.Program, h.Host)
	if h.Owner != "" {
		who = fmt.Sprintf("%s (says: %s, process %d on %s)", h.Owner, h.Program, h.PID, h.Host)
	}
	return fmt.Sprintf("conclave: %s by %s since %s, fence %d", held, who, h.Since.Format(time.RFC3339), h.Fence)
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// GuardedError says that an algorithm guards a lock, so that it cannot be shared and has
// no limit.
type GuardedError struct {
	Name string
	// Prefix and Algorithm are those of the guard, as far as the servers told.
	Prefix, Algorithm string
}

func (e *GuardedError) Error() string {
	return fmt.Sprintf("conclave: lock %q: cannot be shared or have a limit, because the algorithm %q guards all locks with the prefix %q", e.Name, e.Algorithm, e.Prefix)
}

// RevokedError says why a holder was asked to leave. It is the cause of its
// Context.
type RevokedError struct{ Reason string }

func (e *RevokedError) Error() string {
	if e.Reason == "" {
		return "the holder was asked to leave"
	}
	return "the holder was asked to leave: " + e.Reason
}

// Is makes errors.Is true for ErrRevoked, and for ErrLost: a program that asks only
// whether it may continue need not know of revocation.
func (e *RevokedError) Is(target error) bool { return target == ErrRevoked || target == ErrLost }

// NameError says why a name is invalid.
type NameError struct {
	Name   string
	Reason string
}

// Error shows at most the beginning of the name: a bad one may be long.
func (e *NameError) Error() string {
	name := e.Name
	if len(name) > 64 {
		name = name[:64] + "..."
	}
	return fmt.Sprintf("conclave: name: %q: %s", name, e.Reason)
}

// ConfigError says which field of a Config is wrong, and what would be right.
type ConfigError struct {
	Field  string
	Reason string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("conclave: Config.%s: %s", e.Field, e.Reason)
}

// RequestError is the answer of a server that refused a request, or failed at
// it, for a reason that has no error of its own here.
type RequestError struct {
	Op      string
	Name    string
	Code    api.Code
	Message string
}

func (e *RequestError) Error() string {
	code := strings.ToLower(strings.TrimPrefix(e.Code.String(), "CODE_"))
	return fmt.Sprintf("conclave: %s %q: %s (%s)", e.Op, e.Name, e.Message, code)
}

// Is makes errors.Is true for ErrExhausted, of a full queue, for ErrStateLimit, for
// ErrUnauthenticated, ErrDenied and ErrNotFound, and for ErrRevoked, of a session that an operator is ending.
func (e *RequestError) Is(target error) bool {
	return target == ErrExhausted && e.Code == api.Code_CODE_EXHAUSTED ||
		target == ErrStateLimit && e.Code == api.Code_CODE_STATE_LIMIT ||
		target == ErrUnauthenticated && e.Code == api.Code_CODE_UNAUTHENTICATED ||
		target == ErrDenied && e.Code == api.Code_CODE_DENIED ||
		target == ErrNotFound && e.Code == api.Code_CODE_NOT_FOUND ||
		target == ErrRevoked && e.Code == api.Code_CODE_REVOKED
}

// DialError has the result of each server that Dial tried.
type DialError struct {
	// Attempts has the last thing known of each server, in the order of
	// Config.Servers, with leaders that other servers named after them.
	Attempts []Attempt
	// Err is what ended Dial: the end of its context, or ErrWrongCluster, ErrUnauthenticated,
	// a *TLSError or an *AddressError if all servers failed for such a reason.
	Err error
}

// TLSError says why no TLS connection to a server is possible. A retry does not help until
// the certificates or the configuration change.
type TLSError struct {
	Problem TLSProblem
	text    string
}

// TLSProblem is what keeps client and server from a TLS connection.
type TLSProblem int

const (
	// UnknownAuthority means that the client does not trust who signed the server's
	// certificate.
	UnknownAuthority TLSProblem = iota + 1
	// ClientRefused means that the server wants a client certificate that it trusts, or refused the
	// one that it got, for example because that has expired.
	ClientRefused
	// NoTLS means that what listens there does not speak TLS.
	NoTLS
	// TokenInClear means that a token would go to another machine without TLS, where others
	// could read it.
	TokenInClear
	// ServerExpired means that the certificate of the server has expired or is not valid yet, by the
	// clock of this machine.
	ServerExpired
	// WrongName means that the certificate of the server is for other hosts.
	WrongName
)

func (e *TLSError) Error() string { return "TLS: " + e.text }

// AddressError says why a server cannot be reached at an address. A retry does not help until
// the address changes.
type AddressError struct {
	Problem AddressProblem
	text    string
}

// AddressProblem is what is wrong with an address.
type AddressProblem int

const (
	// UnknownHost means that no host has this name.
	UnknownHost AddressProblem = iota + 1
	// PeerPort means that the port is the one on which servers speak to each other.
	PeerPort
)

func (e *AddressError) Error() string { return e.text }

// Attempt is the result of trying one server.
type Attempt struct {
	Server string
	Err    error
}

func (e *DialError) Error() string {
	text := "conclave: no server to attach to: "
	if !client.Says(e.tried(), e.Err) {
		text += e.Err.Error() + ": "
	}
	return strings.TrimSuffix(text+client.Summary(e.tried()), ": ")
}

func (e *DialError) tried() []client.Attempt {
	return client.Each(e.Attempts, func(a Attempt) client.Attempt { return client.Attempt(a) })
}

func (e *DialError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrUnavailable) true if the context ended first.
func (e *DialError) Is(target error) bool {
	return target == ErrUnavailable && errors.Is(e.Err, context.DeadlineExceeded)
}

// UnavailableError has the result of each server, when none answered a call in time.
type UnavailableError struct {
	Op   string
	Name string // what it was about, if that has a name
	// Attempts are as those of a DialError.
	Attempts []Attempt
	Err      error // the end of the context
}

func (e *UnavailableError) Error() string {
	var b strings.Builder
	b.WriteString("conclave: " + e.Op)
	if e.Name != "" {
		fmt.Fprintf(&b, " %q", e.Name)
	}
	fmt.Fprintf(&b, ": %v: %v", e.Err, ErrUnavailable)
	if len(e.Attempts) > 0 {
		b.WriteString("; " + client.Summary(client.Each(e.Attempts, func(a Attempt) client.Attempt { return client.Attempt(a) })))
	}
	return b.String()
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrUnavailable) true.
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }

// QuotaError means that this principal, or all principals together under a prefix, have reached
// a quota. A retry does not help until something is released.
type QuotaError struct {
	Op, Name string
	// Message has the amount and the quota.
	Message string
}

func (e *QuotaError) Error() string {
	return fmt.Sprintf("conclave: %s %q: %s (quota)", e.Op, e.Name, e.Message)
}

// callError is the refusal of a call without a session, which is one of the errors above.
type callError struct {
	text string
	is   error
}

func (e *callError) Error() string { return e.text }

func (e *callError) Unwrap() error { return e.is }

// refusal makes an error of a reply whose code is a failure.
func refusal(op, name string, rep *api.Reply) error {
	if rep.GetCode() == api.Code_CODE_QUOTA {
		return &QuotaError{Op: op, Name: name, Message: rep.GetMessage()}
	}
	return &RequestError{Op: op, Name: name, Code: rep.GetCode(), Message: rep.GetMessage()}
}

// publicError returns the public form of the error of one server.
func publicError(err error) error {
	fault, is := err.(*pool.Fault)
	if !is {
		return err
	}
	switch fault.Kind {
	case pool.UnknownAuthority:
		return &TLSError{UnknownAuthority, fault.Text}
	case pool.ClientRefused:
		return &TLSError{ClientRefused, fault.Text}
	case pool.NoTLS:
		return &TLSError{NoTLS, fault.Text}
	case pool.TokenInClear:
		return &TLSError{TokenInClear, fault.Text}
	case pool.ServerExpired:
		return &TLSError{ServerExpired, fault.Text}
	case pool.WrongName:
		return &TLSError{WrongName, fault.Text}
	case pool.UnknownHost:
		return &AddressError{UnknownHost, fault.Text}
	case pool.PeerPort:
		return &AddressError{PeerPort, fault.Text}
	case pool.Unauthenticated:
		return &callError{fault.Text, ErrUnauthenticated}
	case pool.Denied:
		return &callError{fault.Text, ErrDenied}
	}
	return err
}

func attemptsOf(tried []client.Attempt) []Attempt {
	return client.Each(tried, func(a client.Attempt) Attempt { return Attempt{a.Server, publicError(a.Err)} })
}

// callFailed returns the error of a call that failed.
func callFailed(op, name string, err error) error {
	what := op
	if name != "" {
		what = fmt.Sprintf("%s %q", op, name)
	}
	var interrupted *client.Interrupted
	var rejected *client.Rejected
	var refused *line.Refused
	switch {
	case errors.As(err, &interrupted) && !interrupted.Known && errors.Is(err, context.DeadlineExceeded):
		return &UnavailableError{Op: op, Name: name, Attempts: attemptsOf(interrupted.Attempts), Err: interrupted.Err}
	case interrupted != nil:
		err = interrupted.Err
	case errors.As(err, &rejected):
		return refusal(op, name, rejected.Reply)
	case errors.As(err, &refused):
		err = refusal("open a session", "", refused.Reply)
	}
	return fmt.Errorf("conclave: %s: %w", what, publicError(err))
}

// acquireFailed returns the error of a call to acquire that failed.
func acquireFailed(a *api.Acquire, err error) error {
	class := "lock"
	if a.GetClass() == api.Class_CLASS_ELECTION {
		class = "election"
	}
	var rejected *client.Rejected
	if !errors.As(err, &rejected) {
		return callFailed(class, a.GetName(), err)
	}
	switch reply := rejected.Reply; reply.GetCode() {
	case api.Code_CODE_HELD:
		return &HeldError{Name: a.GetName(), Holder: holderOf(reply.GetHolder()), Closed: closedIn(reply.GetClosed()), election: class == "election"}
	case api.Code_CODE_MOVED:
		return &GuardedError{Name: a.GetName(), Prefix: reply.GetGuard().GetPrefix(), Algorithm: reply.GetGuard().GetAlgorithm()}
	case api.Code_CODE_DEADLOCK:
		return deadlockOf(a, reply)
	}
	return callFailed(class, a.GetName(), err)
}

// holdFailed returns the error of a request about a hold that failed, or nil.
func holdFailed(op, class string, h hold, err error) error {
	if err == nil {
		return nil // before a variable is allocated
	}
	var ended *client.NotHeld
	if errors.As(err, &ended) {
		return notHeld(class, h.Name(), ended.Cause)
	}
	return callFailed(op+" "+class, h.Name(), err)
}

// numberOf returns a number of a grant while it is held.
func numberOf(number uint64, class string, h hold) (uint64, error) {
	switch cause := h.Ended(); {
	case cause == nil:
		return number, nil
	case errors.Is(cause, ErrLost):
		return 0, fmt.Errorf("conclave: %s %q: %w", class, h.Name(), cause)
	default:
		return 0, notHeld(class, h.Name(), cause)
	}
}

// notHeld says why a handle holds nothing any more. Without a cause the servers have ended the
// session meanwhile.
func notHeld(class, name string, cause error) error {
	switch {
	case cause == nil:
		return fmt.Errorf("conclave: %s %q: %w: its session ended before the release", class, name, ErrNotHeld)
	case errors.Is(cause, ErrLost):
		return fmt.Errorf("conclave: %s %q: %w: %w", class, name, ErrNotHeld, cause)
	}
	return fmt.Errorf("conclave: %s %q: %w: it was released before", class, name, ErrNotHeld)
}

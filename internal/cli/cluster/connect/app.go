// Package connect is what the commands that contact a cluster have in common: the flags that say how to
// reach it, tokens, and the errors of a cluster that does not answer.
package connect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/ui"
	core "github.com/conclave-io/conclave/internal/client"
)

// App is a call of the binary that may contact a cluster.
type App struct {
	*ui.App
	Client Flags
}

// dial connects to the cluster within --timeout.
func (a *App) dial(ctx context.Context, cfg conclave.Config) (*conclave.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(a.Client.Timeout))
	defer cancel()
	client, err := conclave.Dial(ctx, cfg)
	var failed *conclave.DialError
	var secrecy *conclave.TLSError
	var address *conclave.AddressError
	switch {
	case errors.As(err, &failed) && errors.As(failed.Err, &secrecy):
		return nil, fmt.Errorf("%s; %s", attempts(failed.Attempts), remedies[secrecy.Problem])
	case errors.As(err, &failed) && errors.As(failed.Err, &address):
		return nil, fmt.Errorf("%s; %s", attempts(failed.Attempts), addressRemedies[address.Problem])
	case errors.Is(err, conclave.ErrUnavailable):
		return nil, Silence(err, a.Client.Timeout)
	case errors.As(err, &failed) && errors.Is(err, conclave.ErrUnauthenticated):
		return nil, errors.New(attempts(failed.Attempts))
	case errors.As(err, &failed) && errors.Is(err, conclave.ErrWrongCluster):
		return nil, fmt.Errorf("%s; set --servers to servers of one cluster, or change --cluster", attempts(failed.Attempts))
	case errors.As(err, &failed) && core.Says(tried(failed.Attempts), failed.Err):
		return nil, &summary{attempts(failed.Attempts), failed.Err}
	case errors.As(err, &failed):
		return nil, fmt.Errorf("%w (%s)", failed.Err, attempts(failed.Attempts))
	}
	return client, err
}

// DialReady connects and opens the session. It fails if the cluster has no quorum for the time
// of --timeout.
func (a *App) DialReady(ctx context.Context, cfg conclave.Config) (*conclave.Client, error) {
	client, err := a.dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	answer, cancel := context.WithTimeout(ctx, time.Duration(a.Client.Timeout))
	defer cancel()
	if err := client.Ready(answer); err != nil {
		go client.Close() // nothing is held, so that there is no need to wait
		return nil, Silence(err, a.Client.Timeout)
	}
	return client, nil
}

// remedies say which flags to change if no TLS connection is possible.
var remedies = map[conclave.TLSProblem]string{
	conclave.UnknownAuthority: "set --cacert to the CA that signed it",
	conclave.ClientRefused:    "set --cert and --key to a certificate that the server trusts",
	conclave.TokenInClear:     "set --cacert to the CA that signed the servers' certificates",
	conclave.ServerExpired:    "set the clock of this machine, or replace the certificate of the server",
	conclave.WrongName:        "set --servers to a host that the certificate names",
	conclave.NoTLS:            "remove --cacert, --cert and --key, or set --servers to a port with TLS",
}

// addressRemedies say what to do about an address at which no server takes clients.
var addressRemedies = map[conclave.AddressProblem]string{
	conclave.UnknownHost: "set --servers to hosts that exist",
	conclave.PeerPort:    "set --servers to the addresses for clients, which conclave serve --listen sets (default port 7400)",
}

// Unanswered means that the cluster did not answer in time.
type Unanswered struct {
	Within ui.Duration
	Tried  string // the error of each server
	Err    error
}

func (e *Unanswered) Error() string {
	return fmt.Sprintf("the cluster did not answer within %v (%s)", &e.Within, e.Tried)
}

func (e *Unanswered) Unwrap() error { return e.Err }

// Silence turns err into an *unanswered if it says that the cluster did not answer.
func Silence(err error, within ui.Duration) error {
	var dialled *conclave.DialError
	var called *conclave.UnavailableError
	switch {
	case errors.As(err, &called):
		return &Unanswered{within, attempts(called.Attempts), err}
	case errors.Is(err, conclave.ErrUnavailable) && errors.As(err, &dialled):
		return &Unanswered{within, attempts(dialled.Attempts), err}
	}
	return err
}

func tried(list []conclave.Attempt) []core.Attempt {
	return ui.Each(list, func(a conclave.Attempt) core.Attempt { return core.Attempt(a) })
}

func attempts(list []conclave.Attempt) string { return core.Summary(tried(list)) }

// summary is an error whose text says what each server said.
type summary struct {
	text string
	err  error
}

func (e *summary) Error() string { return e.text }

func (e *summary) Unwrap() error { return e.err }

// Follow connects, asks a question that has no timeout, and disconnects.
func (a *App) Follow(ctx context.Context, question func(context.Context, *conclave.Client) error) error {
	cfg, err := a.Client.Config()
	if err != nil {
		return err
	}
	client, err := a.dial(ctx, cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	return question(ctx, client)
}

// Ask is follow with the timeout --timeout.
func (a *App) Ask(ctx context.Context, question func(context.Context, *conclave.Client) error) error {
	return a.Follow(ctx, func(ctx context.Context, client *conclave.Client) error {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(a.Client.Timeout))
		defer cancel()
		return Silence(question(ctx, client), a.Client.Timeout)
	})
}

// Show asks a question, and prints the answer.
func Show[Answer any](a *App, cmd *cobra.Command, question func(*admin.Admin, context.Context) (Answer, error), print func(Answer) error) error {
	return a.Ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
		answer, err := question(admin.New(client), ctx)
		if err != nil {
			return err
		}
		return print(answer)
	})
}

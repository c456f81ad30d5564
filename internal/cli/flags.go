package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave"
)

// duration is the value of a flag that is a duration. Unlike pflag's, it says how to repair a
// number without a unit.
type duration time.Duration

func (d *duration) String() string { return time.Duration(*d).String() }

func (d *duration) Type() string { return "duration" }

func (d *duration) Set(text string) error {
	v, err := time.ParseDuration(text)
	if err != nil && text != "" && strings.Trim(text, "0123456789.+-") == "" {
		return fmt.Errorf("missing unit; use a duration such as %ss or %sms", text, text)
	}
	if err != nil {
		return errors.New("not a duration; use for example 10s, 500ms or 2m")
	}
	*d = duration(v)
	return nil
}

// clientFlags say how to reach the cluster. The environment has their defaults.
type clientFlags struct {
	servers           []string
	cacert, cert, key string
	tokenFile, token  string
	cluster           string
	timeout           duration
}

const defaultServers = "127.0.0.1:7400"

func environment(name, fallback string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return fallback
}

func (f *clientFlags) register(flags *pflag.FlagSet) {
	f.timeout = duration(10 * time.Second)
	servers := strings.Split(environment("CONCLAVE_SERVERS", defaultServers), ",")
	flags.StringSliceVar(&f.servers, "servers", servers, "`addresses` of servers, host:port separated by commas, or unix:PATH for an admin socket (CONCLAVE_SERVERS)")
	flags.StringVar(&f.cacert, "cacert", os.Getenv("CONCLAVE_CACERT"), "use TLS, and trust servers whose certificate the authorities in this `file` signed (CONCLAVE_CACERT)")
	flags.StringVar(&f.cert, "cert", os.Getenv("CONCLAVE_CERT"), "`file` with the client's certificate (CONCLAVE_CERT)")
	flags.StringVar(&f.key, "key", os.Getenv("CONCLAVE_KEY"), "`file` with the private key of --cert (CONCLAVE_KEY)")
	flags.StringVar(&f.tokenFile, "token-file", os.Getenv(tokenFileVar), "`file` with a token that proves who this program is, read again for each connection (CONCLAVE_TOKEN_FILE; CONCLAVE_TOKEN has the token itself)")
	f.token = os.Getenv(tokenVar)
	flags.StringVar(&f.cluster, "cluster", os.Getenv("CONCLAVE_CLUSTER"), "refuse servers of other clusters; this is the `id` of the expected one, 16 hexadecimal digits (CONCLAVE_CLUSTER)")
	flags.Var(&f.timeout, "timeout", "how long to wait for an answer from the cluster")
}

// config turns the flags into the configuration of a client.
func (f *clientFlags) config() (cfg conclave.Config, err error) {
	if f.timeout <= 0 {
		return cfg, notPositive("--timeout", f.timeout)
	}
	for _, s := range f.servers {
		if s = strings.TrimSpace(s); s != "" {
			cfg.Servers = append(cfg.Servers, s)
		}
	}
	cfg.Cluster = f.cluster
	if cfg.Token, err = f.proof(); err != nil {
		return cfg, err
	}
	if cfg.TLS, err = f.tls(); err != nil {
		return cfg, err
	}
	return cfg, spoken(cfg.Validate())
}

// notPositive returns the error of a duration that must be above zero.
func notPositive(flag string, d duration) error {
	return fmt.Errorf("%s: %v: must be above 0s", flag, &d)
}

// spoken translates an error about a field of Config into one about a flag.
func spoken(err error) error {
	var bad *conclave.ConfigError
	if errors.As(err, &bad) && bad.Field == "TLS" {
		return fmt.Errorf("--cacert, --cert and --key: %s", bad.Reason)
	}
	if errors.As(err, &bad) {
		return fmt.Errorf("--%s: %s", strings.ToLower(bad.Field), bad.Reason)
	}
	return err
}

// tls returns nil if the connections are to use plain text.
func (f *clientFlags) tls() (*tls.Config, error) {
	if f.cacert == "" && f.cert == "" && f.key == "" || f.throughSocket() {
		return nil, nil
	}
	if (f.cert == "") != (f.key == "") {
		given, absent := "--cert", "--key"
		if f.cert == "" {
			given, absent = absent, given
		}
		return nil, fmt.Errorf("%s: requires %s", given, absent)
	}
	if _, err := conclave.TLSFiles("", "", f.cacert); err != nil {
		return nil, fmt.Errorf("--cacert: %w", err)
	}
	cfg, err := conclave.TLSFiles(f.cert, f.key, f.cacert)
	if err != nil {
		return nil, fmt.Errorf("--cert and --key: %w", err)
	}
	return cfg, nil
}

// throughSocket reports whether the only server is an admin socket, and no flag sets TLS. The
// variables that set TLS are for all commands, and an admin socket does not need them.
func (f *clientFlags) throughSocket() bool {
	return len(f.servers) == 1 && strings.HasPrefix(f.servers[0], "unix:") &&
		f.cacert == os.Getenv("CONCLAVE_CACERT") && f.cert == os.Getenv("CONCLAVE_CERT") && f.key == os.Getenv("CONCLAVE_KEY")
}

// dial connects to the cluster within --timeout.
func (a *app) dial(ctx context.Context, cfg conclave.Config) (*conclave.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(a.client.timeout))
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
		return nil, silence(err, a.client.timeout)
	case errors.As(err, &failed) && errors.Is(err, conclave.ErrUnauthenticated):
		return nil, errors.New(attempts(failed.Attempts))
	case errors.As(err, &failed) && errors.Is(err, conclave.ErrWrongCluster):
		return nil, fmt.Errorf("%s; set --servers to servers of one cluster, or change --cluster", attempts(failed.Attempts))
	case errors.As(err, &failed):
		return nil, fmt.Errorf("%w (%s)", failed.Err, attempts(failed.Attempts))
	}
	return client, err
}

// dialReady connects and opens the session. It fails if the cluster has no quorum for the time
// of --timeout.
func (a *app) dialReady(ctx context.Context, cfg conclave.Config) (*conclave.Client, error) {
	client, err := a.dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	answer, cancel := context.WithTimeout(ctx, time.Duration(a.client.timeout))
	defer cancel()
	if err := client.Ready(answer); err != nil {
		go client.Close() // nothing is held, so that there is no need to wait
		return nil, silence(err, a.client.timeout)
	}
	return client, nil
}

// remedies say which flags to change if no TLS connection is possible.
var remedies = map[conclave.TLSProblem]string{
	conclave.UnknownAuthority: "set --cacert to the CA that signed it",
	conclave.ClientRefused:    "set --cert and --key to a certificate that the server trusts",
	conclave.TokenInClear:     "set --cacert to the CA that signed the servers' certificates",
	conclave.NoTLS:            "remove --cacert, --cert and --key, or set --servers to a port with TLS",
}

// addressRemedies say what to do about an address at which no server takes clients.
var addressRemedies = map[conclave.AddressProblem]string{
	conclave.UnknownHost: "set --servers to hosts that exist",
	conclave.PeerPort:    "set --servers to the addresses for clients, which conclave serve --listen sets (default port 7400)",
}

// unanswered means that the cluster did not answer in time.
type unanswered struct {
	within duration
	tried  string // the error of each server
	err    error
}

func (e *unanswered) Error() string {
	return fmt.Sprintf("the cluster did not answer within %v (%s)", &e.within, e.tried)
}

func (e *unanswered) Unwrap() error { return e.err }

// silence turns err into an *unanswered if it says that the cluster did not answer.
func silence(err error, within duration) error {
	var dialled *conclave.DialError
	var called *conclave.UnavailableError
	switch {
	case errors.As(err, &called):
		return &unanswered{within, attempts(called.Attempts), err}
	case errors.Is(err, conclave.ErrUnavailable) && errors.As(err, &dialled):
		return &unanswered{within, attempts(dialled.Attempts), err}
	}
	return err
}

func attempts(list []conclave.Attempt) string {
	return strings.Join(each(list, func(a conclave.Attempt) string { return fmt.Sprintf("%s: %v", a.Server, a.Err) }), "; ")
}

// follow connects, asks a question that has no timeout, and disconnects.
func (a *app) follow(ctx context.Context, question func(context.Context, *conclave.Client) error) error {
	cfg, err := a.client.config()
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

// ask is follow with the timeout --timeout.
func (a *app) ask(ctx context.Context, question func(context.Context, *conclave.Client) error) error {
	return a.follow(ctx, func(ctx context.Context, client *conclave.Client) error {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(a.client.timeout))
		defer cancel()
		return silence(question(ctx, client), a.client.timeout)
	})
}

// show asks a question, and prints the answer.
func show[Answer any](a *app, cmd *cobra.Command, question func(*conclave.Client, context.Context) (Answer, error), print func(Answer) error) error {
	return a.ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
		answer, err := question(client, ctx)
		if err != nil {
			return err
		}
		return print(answer)
	})
}

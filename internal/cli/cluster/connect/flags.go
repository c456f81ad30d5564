package connect

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// Flags say how to reach the cluster. The environment has their defaults.
type Flags struct {
	Servers           []string
	cacert, cert, key string
	tokenFile, token  string
	cluster           string
	Timeout           ui.Duration
}

const defaultServers = "127.0.0.1:7400"

func environment(name, fallback string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return fallback
}

// Register adds the flags to those of a command.
func (f *Flags) Register(flags *pflag.FlagSet) {
	f.Timeout = ui.Duration(10 * time.Second)
	servers := strings.Split(environment("CONCLAVE_SERVERS", defaultServers), ",")
	flags.StringSliceVar(&f.Servers, "servers", servers, "`addresses` of servers, host:port separated by commas, or unix:PATH for an admin socket (CONCLAVE_SERVERS)")
	flags.StringVar(&f.cacert, "cacert", os.Getenv("CONCLAVE_CACERT"), "use TLS, and trust servers whose certificate the authorities in this `file` signed (CONCLAVE_CACERT)")
	flags.StringVar(&f.cert, "cert", os.Getenv("CONCLAVE_CERT"), "`file` with the client's certificate (CONCLAVE_CERT)")
	flags.StringVar(&f.key, "key", os.Getenv("CONCLAVE_KEY"), "`file` with the private key of --cert (CONCLAVE_KEY)")
	flags.StringVar(&f.tokenFile, "token-file", os.Getenv(tokenFileVar), "`file` with a token that proves who this program is, read again for each connection (CONCLAVE_TOKEN_FILE; CONCLAVE_TOKEN has the token itself)")
	f.token = os.Getenv(tokenVar)
	flags.StringVar(&f.cluster, "cluster", os.Getenv("CONCLAVE_CLUSTER"), "refuse servers of other clusters; this is the `id` of the expected one, 16 hexadecimal digits (CONCLAVE_CLUSTER)")
	flags.Var(&f.Timeout, "timeout", "how long to wait for an answer from the cluster")
}

// Config turns the flags into the configuration of a client.
func (f *Flags) Config() (cfg conclave.Config, err error) {
	if f.Timeout <= 0 {
		return cfg, ui.NotPositive("--timeout", f.Timeout)
	}
	for _, s := range f.Servers {
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
func (f *Flags) tls() (*tls.Config, error) {
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
	return cfg, f.checkCert(cfg, time.Now())
}

// checkCert refuses a certificate that is not valid now. The servers would refuse it too, unless only
// the clock of this machine is wrong.
func (f *Flags) checkCert(cfg *tls.Config, now time.Time) error {
	if f.cert == "" {
		return nil
	}
	pair, err := cfg.GetClientCertificate(nil)
	if err != nil {
		return fmt.Errorf("--cert: %w", err)
	}
	clock := "the clock of this machine shows " + now.UTC().Format(time.RFC3339)
	switch leaf := pair.Leaf; {
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("--cert: %s: valid from %s on, and %s: set the clock, or use another certificate", f.cert, leaf.NotBefore.UTC().Format(time.RFC3339), clock)
	case now.After(leaf.NotAfter):
		return fmt.Errorf("--cert: %s: expired at %s, and %s: use another certificate, or set the clock", f.cert, leaf.NotAfter.UTC().Format(time.RFC3339), clock)
	}
	return nil
}

// throughSocket reports whether the only server is an admin socket, and no flag sets TLS. The
// variables that set TLS are for all commands, and an admin socket does not need them.
func (f *Flags) throughSocket() bool {
	return len(f.Servers) == 1 && strings.HasPrefix(f.Servers[0], "unix:") &&
		f.cacert == os.Getenv("CONCLAVE_CACERT") && f.cert == os.Getenv("CONCLAVE_CERT") && f.key == os.Getenv("CONCLAVE_KEY")
}

package conclave

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/conclave-io/conclave/internal/kit/near"
)

// Limits that the servers enforce too.
const (
	// DefaultTTL is the TTL of a Config that has none.
	DefaultTTL = 10 * time.Second
	// MaxLinger is the longest that a name stays closed after a hold: see AtLeast and DelayAfterLoss.
	MaxLinger = 7 * 24 * time.Hour

	// MinTTL and MaxTTL bound Config.TTL.
	MinTTL = 100 * time.Millisecond
	MaxTTL = time.Hour
	// MaxName is the longest name of a lock or an election, in bytes.
	MaxName = 512
	// MaxLimit is the largest limit of a lock.
	MaxLimit = 1 << 20
	// MaxValue is the longest value of an election, in bytes.
	MaxValue = 64 << 10
)

// Config says how to reach a cluster. Only Servers has to be set.
type Config struct {
	// Servers are addresses ("host:port") at which servers of one cluster take
	// clients; one is enough to find the others' leader. A single "unix:PATH" is the
	// admin socket of a server on this machine: everything goes through it, without TLS.
	Servers []string

	// TTL is how long the session outlives its last renewal, and so how long
	// others wait for a lock whose holder died: 100 ms to 1 h, or 0 for 10 s.
	// The session is renewed every TTL/4. The client itself stops believing
	// earlier, by TTL/10 but at least 100 ms (by TTL/3 if the TTL is under 1 s).
	TTL time.Duration

	// TLS makes connections use TLS; nil means plain text.
	TLS *tls.Config

	// Token returns a token that proves who this program is: cvt1_ID_SECRET, as admin.NewToken
	// and conclave access token create make it. It is asked for each stream and each call, so
	// that it can return another token before the first one expires. A token goes only over
	// TLS or to this machine, and through no admin socket. nil means that there is none.
	Token func(ctx context.Context) (string, error)

	// Cluster is the expected identity of the cluster, 16 hexadecimal digits.
	// If empty, the first server that answers decides it. A server of another
	// cluster is never used.
	Cluster string

	// Home is the server ("host:port") to ask first for locks that an algorithm guards.
	// If empty, any that takes part.
	Home string

	// Program names this program to people who ask who holds; by default the
	// base name of the executable.
	Program string

	// Logger takes what happens behind the scenes: leaders found and lost,
	// sessions lost. By default nothing is logged.
	Logger *slog.Logger

	// Dialer connects to the address of a server. Set it to use a tunnel, or a server in
	// this process. By default they are made by TCP.
	Dialer func(ctx context.Context, address string) (net.Conn, error)

	// Near is the server in this process, as embed.Server.ClientConfig sets it. Locks that an
	// algorithm guards are asked for there first, without a message.
	Near LocalServer
}

// LocalServer is a server in this process. Only package embed makes one: a program can pass it from one
// Config to another, and do nothing else with it.
type LocalServer interface{ near.Server }

// WithDefaults returns the configuration with every zero field replaced by its
// default.
func (cfg Config) WithDefaults() Config {
	if cfg.TTL == 0 {
		cfg.TTL = DefaultTTL
	}
	if cfg.Program == "" {
		cfg.Program = filepath.Base(os.Args[0])
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if path, is := cfg.socket(); is {
		cfg.Dialer = func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	}
	if cfg.Dialer == nil {
		cfg.Dialer = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	cfg.Cluster = strings.ToLower(cfg.Cluster)
	return cfg
}

// Validate returns a *ConfigError that names the first field that is wrong.
func (cfg Config) Validate() error {
	if len(cfg.Servers) == 0 {
		return &ConfigError{"Servers", `missing; expected at least one address such as "127.0.0.1:7400"`}
	}
	path, local := cfg.socket()
	switch {
	case local && path == "":
		return &ConfigError{"Servers", `"unix:": missing path; use for example "unix:/var/lib/conclave/admin.sock"`}
	case local && cfg.TLS != nil:
		return &ConfigError{"TLS", fmt.Sprintf("cannot be combined with the admin socket %q", cfg.Servers[0])}
	}
	for _, s := range cfg.Servers {
		if local {
			break
		}
		if strings.HasPrefix(s, socketPrefix) {
			return &ConfigError{"Servers", fmt.Sprintf("%q: an admin socket cannot be combined with other servers", s)}
		}
		if !isAddress(s) {
			return &ConfigError{"Servers", fmt.Sprintf("%q: expected host:port", s)}
		}
	}
	if cfg.Home != "" && !isAddress(cfg.Home) {
		return &ConfigError{"Home", fmt.Sprintf("%q: expected host:port", cfg.Home)}
	}
	if cfg.TTL != 0 && (cfg.TTL < MinTTL || cfg.TTL > MaxTTL) {
		return &ConfigError{"TTL", fmt.Sprintf("%v: must be between %v and %v, or 0 for the default %v", cfg.TTL, MinTTL, MaxTTL, DefaultTTL)}
	}
	if c := cfg.Cluster; c != "" && (len(c) != 16 || strings.Trim(c, "0123456789abcdefABCDEF") != "") {
		return &ConfigError{"Cluster", fmt.Sprintf("%q: expected 16 hexadecimal digits", c)}
	}
	return nil
}

// isAddress reports whether s is host:port, with a port from 1 to 65535 or the name of one.
func isAddress(s string) bool {
	host, name, err := net.SplitHostPort(s)
	port, unknown := net.LookupPort("tcp", name)
	return err == nil && host != "" && unknown == nil && port != 0
}

// socketPrefix begins the path of an admin socket among addresses.
const socketPrefix = "unix:"

// socket returns the path of the admin socket, if that is the only server.
func (cfg Config) socket() (path string, is bool) {
	if len(cfg.Servers) != 1 {
		return "", false
	}
	return strings.CutPrefix(cfg.Servers[0], socketPrefix)
}

// ValidateName returns a *NameError if name cannot name a lock or an election:
// 1 to 512 bytes of UTF-8 without control characters.
func ValidateName(name string) error {
	bad := func(format string, args ...any) error {
		return &NameError{name, fmt.Sprintf(format, args...)}
	}
	if name == "" {
		return bad("must have 1 to %d bytes", MaxName)
	}
	if len(name) > MaxName {
		return bad("%d bytes: must have at most %d bytes", len(name), MaxName)
	}
	if !utf8.ValidString(name) {
		return bad("must be valid UTF-8")
	}
	if i := strings.IndexFunc(name, unicode.IsControl); i >= 0 {
		return bad("must not contain control characters; there is one at byte %d", i)
	}
	return nil
}

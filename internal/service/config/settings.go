package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/conclave-io/conclave/internal/kit/outfile"
)

// Setting is a field of Server as users set it: with its key in a file, as CONCLAVE_KEY in
// the environment, or as --key on the command line.
type Setting struct {
	Key, Usage string
	// Switch means that its values are true and false.
	Switch bool
	get    func(c *Server) any
	set    func(c *Server, value string) error
}

// Settings are all settings, in the order of the help.
var Settings = []Setting{
	number("id", "id of this server among the peers, from 1 up", func(c *Server) *uint64 { return &c.ID }),
	text("cluster-name", "name of the cluster; with the peers it makes the cluster's identity (default conclave)", func(c *Server) *string { return &c.ClusterName }),
	place("data", "directory for everything on disk (default conclave-data)", func(c *Server) *string { return &c.Data }),
	text("listen", "address at which clients are taken (default "+DefaultListen+")", func(c *Server) *string { return &c.Listen }),
	text("advertise", "address that clients are told to use (default: that of --listen)", func(c *Server) *string { return &c.Advertise }),
	text("peers", "all servers of the cluster, this one included, as 1=host:port,2=host:port,... (default: this server alone)", func(c *Server) *string { return &c.Peers }),
	text("join", "addresses of servers of a cluster that this server joins, host:port with commas between; it gets its id from them", func(c *Server) *string { return &c.Join }),
	place("join-token-file", "with --join: file with the token of conclave member add, which a cluster with rules of access asks for", func(c *Server) *string { return &c.JoinTokenFile }),
	toggle("learner", "with --join: stay a learner, without a vote, until promoted", func(c *Server) *bool { return &c.Learner }),
	text("peer-listen", "address at which other servers are taken (default: that of this server in --peers, or "+DefaultPeerListen+")", func(c *Server) *string { return &c.PeerListen }),
	text("peer-advertise", "address of this server for others, in a cluster of one or with --join (default: that of --peer-listen)", func(c *Server) *string { return &c.PeerAdvertise }),
	text("preset", "lan, or wan for times ten times as long (default lan)", func(c *Server) *string { return &c.Preset }),
	span("heartbeat", "time between two heartbeats of the leader (default 50ms)", func(c *Server) *time.Duration { return &c.Heartbeat }),
	span("election-timeout", "how long to wait for a heartbeat before an election (default: 4 heartbeats)", func(c *Server) *time.Duration { return &c.Election }),
	span("view-lease", "how long the locks that algorithms guard stay with the clients of this server if it crashes (default: 6 election timeouts, at least 1.2s)", func(c *Server) *time.Duration { return &c.ViewLease }),
	place("tls-cert", "file with this server's certificate for clients, which then must use TLS", func(c *Server) *string { return &c.TLSCert }),
	place("tls-key", "file with the private key of --tls-cert", func(c *Server) *string { return &c.TLSKey }),
	place("tls-ca", "file with the certificates that must vouch for clients", func(c *Server) *string { return &c.TLSCA }),
	text("client-cert", "required or optional: whether clients must show a certificate that --tls-ca vouches for; without one they need a token (default required)", func(c *Server) *string { return &c.ClientCert }),
	place("peer-cert", "file with this server's certificate for the other servers", func(c *Server) *string { return &c.PeerCert }),
	place("peer-key", "file with the private key of --peer-cert", func(c *Server) *string { return &c.PeerKey }),
	place("peer-ca", "file with the certificates that must vouch for the other servers", func(c *Server) *string { return &c.PeerCA }),
	toggle("insecure", "allow addresses beyond this machine without TLS", func(c *Server) *bool { return &c.Insecure }),
	text("access", "open lets everybody in while the cluster has no rules of access; closed only callers who come by a way that other machines cannot use (default closed)", func(c *Server) *string { return &c.Access }),
	quantity("state-limit", "how large the replicated state may be, 16MiB to 768MiB (default 512MiB); beyond it the leader takes no new locks and sessions", func(c *Server) *int { return &c.StateLimit }),
	text("log-level", "debug, info, warn or error (default info)", func(c *Server) *string { return &c.LogLevel }),
	text("log-format", "text or json (default text)", func(c *Server) *string { return &c.LogFormat }),
	place("admin-socket", "path of the Unix socket for administration (default admin.sock in --data)", func(c *Server) *string { return &c.AdminSocket }),
	text("health-listen", "address that serves /healthz, /readyz and /metrics without TLS and proof, and nothing else (default none)", func(c *Server) *string { return &c.HealthListen }),
	text("audit-log", "file that gets a line of JSON for each act of administration, or - for standard output (default none)", func(c *Server) *string { return &c.AuditLog }),
	toggle("audit-required", "refuse administration, new sessions and acquisitions while the audit log cannot be written", func(c *Server) *bool { return &c.AuditRequired }),
	text("audit-grants", "also write to --audit-log each grant and each end of a hold of the names that start with this prefix; * means all (default none)", func(c *Server) *string { return &c.AuditGrants }),
	text("pprof", "address on this machine that serves net/http/pprof (default none)", func(c *Server) *string { return &c.Pprof }),
}

func text(key, usage string, field func(*Server) *string) Setting {
	return Setting{Key: key, Usage: usage, get: func(c *Server) any { return *field(c) }, set: func(c *Server, value string) error {
		*field(c) = value
		return nil
	}}
}

// place is the name of a file or a directory, which cannot be a stream.
func place(key, usage string, field func(*Server) *string) Setting {
	s := text(key, usage, field)
	set := s.set
	s.set = func(c *Server, value string) error {
		if value == outfile.Dash {
			return outfile.ErrDash
		}
		return set(c, value)
	}
	return s
}

func number(key, usage string, field func(*Server) *uint64) Setting {
	return Setting{Key: key, Usage: usage, get: func(c *Server) any { return *field(c) }, set: func(c *Server, value string) (err error) {
		if *field(c), err = strconv.ParseUint(value, 10, 64); err != nil || *field(c) == 0 {
			return fmt.Errorf("%q: must be an integer of at least 1", value)
		}
		return nil
	}}
}

func span(key, usage string, field func(*Server) *time.Duration) Setting {
	return Setting{Key: key, Usage: usage, get: func(c *Server) any { return *field(c) }, set: func(c *Server, value string) (err error) {
		if *field(c), err = time.ParseDuration(value); err != nil || *field(c) <= 0 {
			return fmt.Errorf("%q: must be a duration above 0s, such as 50ms or 2s", value)
		}
		return nil
	}}
}

// units are the units of sizes, the longest names first.
var units = []struct {
	name string
	size int
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"", 1}}

func quantity(key, usage string, field func(*Server) *int) Setting {
	return Setting{Key: key, Usage: usage, get: func(c *Server) any { return *field(c) }, set: func(c *Server, value string) error {
		for _, unit := range units {
			count, is := strings.CutSuffix(value, unit.name)
			if !is {
				continue
			}
			n, err := strconv.ParseUint(strings.TrimSpace(count), 10, 31)
			if err != nil || n == 0 {
				break
			}
			*field(c) = int(min(n*uint64(unit.size), math.MaxInt))
			return nil
		}
		return fmt.Errorf("%q: not a size; use a number of bytes, or a unit as in 512MiB", value)
	}}
}

func toggle(key, usage string, field func(*Server) *bool) Setting {
	return Setting{Key: key, Usage: usage, Switch: true, get: func(c *Server) any { return *field(c) }, set: func(c *Server, value string) (err error) {
		if *field(c), err = strconv.ParseBool(value); err != nil {
			return fmt.Errorf("%q: must be true or false", value)
		}
		return nil
	}}
}

// Apply sets the field of c that belongs to s.
func (s Setting) Apply(c *Server, value string) error { return s.set(c, value) }

// Differing returns the keys of the settings whose values differ in other.
func (c Server) Differing(other Server) []string {
	var keys []string
	for _, s := range Settings {
		if s.get(&c) != s.get(&other) {
			keys = append(keys, s.Key)
		}
	}
	return keys
}

// Variable returns the name of the setting in the environment.
func (s Setting) Variable() string {
	return "CONCLAVE_" + strings.ToUpper(strings.ReplaceAll(s.Key, "-", "_"))
}

// ReadFile sets what the TOML file at path sets. It refuses unknown keys: a misspelt limit
// must not be silently ignored.
func (c *Server) ReadFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	var values map[string]any
	if err := toml.Unmarshal(data, &values); err != nil {
		return fmt.Errorf("config: %s%w", path, misread(err))
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := c.setKey(key, values[key]); err != nil {
			return fmt.Errorf("config: %s:%d: %w", path, lineOf(data, key), err)
		}
	}
	return nil
}

// misread gives an error of the decoder the form of our own errors.
func misread(err error) error {
	if syntax, is := errors.AsType[toml.ParseError](err); is {
		return fmt.Errorf(":%d: %s", syntax.Position.Line, syntax.Message)
	}
	return fmt.Errorf(": %w", err)
}

func (c *Server) setKey(key string, value any) error {
	i := slices.IndexFunc(Settings, func(s Setting) bool { return s.Key == key })
	if i < 0 {
		return fmt.Errorf("unknown key %q", key)
	}
	switch value.(type) {
	case string, int64, bool:
		if err := Settings[i].Apply(c, fmt.Sprint(value)); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	}
	return fmt.Errorf("%s: must be a single value", key)
}

// lineOf returns the line that sets key, or 1.
func lineOf(data []byte, key string) int {
	name := regexp.QuoteMeta(key)
	at := regexp.MustCompile(`(?m)^[ \t]*(?:["']?` + name + `["']?[ \t]*[=.]|\[+[ \t]*["']?` + name + `\b)`).FindIndex(data)
	if at == nil {
		return 1
	}
	return 1 + strings.Count(string(data[:at[0]]), "\n")
}

// ReadEnvironment sets what environment variables set; lookup is os.LookupEnv or similar.
func (c *Server) ReadEnvironment(lookup func(string) (string, bool)) error {
	for _, s := range Settings {
		value, given := lookup(s.Variable())
		if !given || value == "" {
			continue
		}
		if err := s.Apply(c, value); err != nil {
			return fmt.Errorf("%s: %w", s.Variable(), err)
		}
	}
	return nil
}

// Logger returns the logger that c configures. Its level is level, which is set to LogLevel.
func (c Server) Logger(w io.Writer, level *slog.LevelVar) (*slog.Logger, error) {
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return nil, c.checkLog()
	}
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == LogJSON {
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return slog.New(slog.NewTextHandler(w, options)), nil
}

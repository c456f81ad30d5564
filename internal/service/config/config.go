// Package config has the settings of a server: what they mean, their defaults, how they are read from a
// file, the environment and flags, and which are refused.
package config

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/guarded/home"
	"github.com/conclave-io/conclave/internal/service/listen"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// Server has the settings of a server. Its zero value is a cluster of one server on this
// machine. The keys of a configuration file, the environment and the flags are
// in Settings.
type Server struct {
	// ID is the id of this server, from 1 up [1 in a cluster of one].
	ID uint64
	// ClusterName and Peers together determine the identity of the cluster ["conclave"].
	ClusterName string
	// Data is the directory of all files ["conclave-data"].
	Data string

	// Listen is the address for clients ["127.0.0.1:7400"], and Advertise the address that
	// clients are told [Listen].
	Listen, Advertise string
	// PeerListen is the address for other servers [the address of this server in Peers, or
	// "127.0.0.1:7500"], and PeerAdvertise the address that other servers are told in a
	// cluster that starts with one server [PeerListen].
	PeerListen, PeerAdvertise string
	// Peers are all servers of the cluster, this one included:
	// "1=host:port,2=host:port,3=host:port" [a cluster of this server alone].
	Peers string
	// Join are client addresses of servers of a cluster. With it this server joins that
	// cluster, which assigns its id; ID and Peers stay empty. Once the server has joined,
	// Join has no other effect.
	Join string
	// JoinTokenFile has a token that lets this server join, as conclave member add makes one. It
	// is read when the server asks to join [none].
	JoinTokenFile string
	// Learner makes it stay a learner, without a vote, until it is promoted.
	Learner bool

	// Preset adapts timeouts to the network: "lan", or "wan", which multiplies
	// their defaults by 10 ["lan"].
	Preset string
	// Heartbeat is the time between two heartbeats of the leader [50 ms].
	Heartbeat time.Duration
	// Election is the election timeout: how long a follower waits without a heartbeat
	// before it stands for election, between this value and twice this value [4 heartbeats].
	Election time.Duration
	// ViewLease is the lease of the seat by which this server guards locks by algorithms. If the
	// server crashes, others get the locks that its clients held after this time [6 Election,
	// at least 1.2 s]. Servers may use different values.
	ViewLease time.Duration

	// TLSCert and TLSKey are PEM files; with them clients must use TLS. TLSCA, if set, has
	// the authorities that must have signed the certificates of clients.
	TLSCert, TLSKey, TLSCA string
	// ClientCert is "required" or "optional": whether, with TLSCA, a client needs a
	// certificate to pass the TLS handshake ["required"].
	ClientCert string
	// PeerCert, PeerKey and PeerCA make servers use TLS among themselves. Both sides must
	// then show a certificate signed by an authority in PeerCA.
	PeerCert, PeerKey, PeerCA string
	// Insecure allows addresses beyond this machine without TLS.
	Insecure bool
	// Access is "closed" or "open" ["closed"]. It matters only while the cluster has no access
	// rules and other machines can reach Listen: if open, any caller may do everything; if
	// closed, callers on other machines may do nothing.
	Access string

	// StateLimit is the largest size of the replicated state, in bytes, about the size of a
	// snapshot: 16 to 768 MiB [512 MiB]. As the leader this server refuses requests that
	// would make it larger. Renewals, releases and closes always pass.
	StateLimit int

	// LogLevel is debug, info, warn or error ["info"], LogFormat text or json
	// ["text"]. Logger creates the logger from them.
	LogLevel, LogFormat string
	// AdminSocket is the path of a Unix socket. The user who runs the server, and root, may
	// call the server through it as local:ID/UID [admin.sock in Data; none with Memory].
	AdminSocket string
	// HealthListen is an address that serves only /healthz, /readyz and /metrics, without TLS,
	// for probes that have no certificate [none].
	HealthListen string
	// AuditLog is a file that receives all recorded acts of administration, one line of JSON
	// each, and what this server refuses; "-" is standard output [none].
	AuditLog string
	// AuditRequired makes a server that cannot write its audit log hand leadership over, and
	// refuse administration, new sessions and acquisitions. It never refuses renewals,
	// releases, cancels and closes.
	AuditRequired bool
	// AuditGrants also writes to AuditLog each grant and each end of a hold of the locks and
	// elections whose names start with it; "*" means all [none].
	AuditGrants string
	// Pprof is an address on this machine that serves net/http/pprof [none].
	Pprof string

	// The following fields have no key.

	// Page, if not nil, serves the web page: at / for clients that accept HTML, and at every
	// other path that the server does not use itself.
	Page http.Handler
	// Version is the version that the server reports.
	Version string
	// Log is the logger [slog.Default()].
	Log *slog.Logger
	// Memory keeps everything in memory and nothing in Data, in a cluster of one.
	Memory bool
	// Listener and PeerListener, if not nil, are used instead of listening at
	// Listen and PeerListen.
	Listener, PeerListener net.Listener
	// LookEvery is how often the server checks whether its TLS files have changed and have to
	// be read again [1 min].
	LookEvery time.Duration
	// AnchorEvery is how often the server logs where its audit records end [1 h].
	AnchorEvery time.Duration
	// Limits configures the replica, for tests; zero values mean the defaults.
	Limits replica.Config

	// IOTimeout is how long a connection may take to send its first bytes, a request
	// to arrive, and a response to be read, for tests [10 s].
	IOTimeout time.Duration
}

// Defaults, and values of settings that are words.
const (
	DefaultListen     = "127.0.0.1:7400"
	DefaultPeerListen = "127.0.0.1:7500"

	AccessClosed, AccessOpen = "closed", "open"

	LogText, LogJSON = "text", "json"

	CertRequired, CertOptional = "required", "optional"

	defaultHeartbeat = 50 * time.Millisecond
	defaultIOTimeout = 10 * time.Second

	defaultStateLimit = 512 << 20
	wanFactor         = 10
)

// WithDefaults fills in the zero values.
func (c Server) WithDefaults() Server {
	set(&c.ClusterName, "conclave")
	set(&c.Data, "conclave-data")
	set(&c.Listen, DefaultListen)
	set(&c.Advertise, c.Listen)
	set(&c.Preset, "lan")
	set(&c.Access, AccessClosed)
	set(&c.ClientCert, CertRequired)
	set(&c.StateLimit, defaultStateLimit)
	set(&c.LogLevel, "info")
	set(&c.LogFormat, LogText)
	set(&c.Version, "unknown")
	set(&c.IOTimeout, defaultIOTimeout)
	set(&c.LookEvery, time.Minute)
	set(&c.AnchorEvery, time.Hour)
	switch {
	case c.Join != "":
		set(&c.PeerListen, c.PeerAdvertise)
		set(&c.PeerListen, DefaultPeerListen)
		set(&c.PeerAdvertise, c.PeerListen)
	case c.Peers == "":
		set(&c.ID, 1)
		set(&c.PeerListen, DefaultPeerListen)
		set(&c.PeerAdvertise, c.PeerListen)
		c.Peers = fmt.Sprintf("%d=%s", c.ID, c.PeerAdvertise)
	}
	if peers, err := ParsePeers(c.Peers); err == nil {
		set(&c.PeerListen, peers[c.ID])
		set(&c.PeerAdvertise, peers[c.ID])
	}
	set(&c.Heartbeat, c.factor()*defaultHeartbeat)
	set(&c.Election, 4*c.Heartbeat)
	set(&c.ViewLease, home.LeastLease(c.Election))
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

func (c Server) factor() time.Duration {
	if c.Preset == "wan" {
		return wanFactor
	}
	return 1
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// ParsePeers reads a list such as "1=10.0.0.1:7500,2=10.0.0.2:7500".
func ParsePeers(list string) (map[uint64]string, error) {
	peers := make(map[uint64]string)
	for entry := range strings.SplitSeq(list, ",") {
		id, address, found := strings.Cut(strings.TrimSpace(entry), "=")
		number, err := strconv.ParseUint(id, 10, 64)
		switch {
		case !found || err != nil || number == 0:
			return nil, fmt.Errorf(`%q: expected id=host:port with an id of at least 1`, entry)
		case peers[number] != "":
			return nil, fmt.Errorf("server %d: listed twice", number)
		}
		if err := CheckAddress(address); err != nil {
			return nil, fmt.Errorf("server %d: %w", number, err)
		}
		for other, taken := range peers {
			if taken == address {
				return nil, fmt.Errorf("%s: used by servers %d and %d; each needs an address of its own", address, min(other, number), max(other, number))
			}
		}
		peers[number] = address
	}
	return peers, nil
}

// JoinAddresses returns the addresses of Join.
func (c Server) JoinAddresses() []string {
	var addresses []string
	for address := range strings.SplitSeq(c.Join, ",") {
		addresses = append(addresses, strings.TrimSpace(address))
	}
	return addresses
}

// Cluster returns the identity of the cluster. It is the same on all servers
// with the same name and the same peers, in any order.
func (c Server) Cluster() (uint64, error) {
	peers, err := ParsePeers(c.Peers)
	if err != nil {
		return 0, err
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n", c.ClusterName)
	for _, id := range slices.Sorted(maps.Keys(peers)) {
		fmt.Fprintf(hash, "%d=%s\n", id, peers[id])
	}
	return binary.BigEndian.Uint64(hash.Sum(nil)), nil
}

// FormatCluster returns an identity in the form that people and the protocol use.
func FormatCluster(cluster uint64) string { return fmt.Sprintf("%016x", cluster) }

// SocketPath returns the path of the admin socket, or "" if there is none.
func (c Server) SocketPath() string {
	switch {
	case c.AdminSocket != "":
		return c.AdminSocket
	case c.Memory:
		return ""
	}
	return filepath.Join(c.Data, authn.SocketName)
}

func (c Server) checkSocket() error {
	if n := len(c.AdminSocket); n > listen.LongestSocket {
		return fmt.Errorf("admin-socket: %.40q...: %d bytes: must have at most %d", c.AdminSocket, n, listen.LongestSocket)
	}
	return nil
}

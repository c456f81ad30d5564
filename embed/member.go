package embed

import (
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// Member has the settings of a server that is a member of a cluster. They are those of
// `conclave serve`, which docs/operations.md describes; its --data is Config.Dir. The default of each
// setting is in brackets. The zero value starts a cluster of one server on this machine. Open returns
// an error that names the first setting that is wrong.
type Member struct {
	// ID is the id of this server, from 1 up [1 in a cluster of one].
	ID uint64
	// ClusterName and Peers together determine the identity of the cluster ["conclave"].
	ClusterName string
	// Peers are all servers of the cluster, this one included:
	// "1=host:port,2=host:port,3=host:port" [a cluster of this server alone].
	Peers string
	// Join are client addresses of servers of a cluster, separated by commas. With it this server
	// joins that cluster, which assigns its id; ID and Peers stay empty. Once the server has joined,
	// Join has no other effect.
	Join string
	// JoinTokenFile has a token that lets this server join, as admin.NewJoinToken makes one. It is
	// read when the server asks to join [none].
	JoinTokenFile string
	// Learner makes it stay a learner, without a vote, until it is promoted.
	Learner bool

	// Listen is the address for clients ["127.0.0.1:7400"], and Advertise the address that clients
	// are told [Listen].
	Listen, Advertise string
	// PeerListen is the address for other servers [the address of this server in Peers, or
	// "127.0.0.1:7500"], and PeerAdvertise the address that other servers are told in a cluster that
	// starts with one server [PeerListen].
	PeerListen, PeerAdvertise string
	// Listener and PeerListener, if not nil, are used instead of listening at Listen and PeerListen.
	// The server closes them when it stops.
	Listener, PeerListener net.Listener

	// Preset adapts timeouts to the network: "lan", or "wan", which multiplies their defaults by
	// 10 ["lan"].
	Preset string
	// Heartbeat is the time between two heartbeats of the leader [50 ms].
	Heartbeat time.Duration
	// Election is the election timeout: how long a follower waits without a heartbeat before it
	// stands for election, between this value and twice this value [4 heartbeats].
	Election time.Duration
	// ViewLease is the lease of the seat by which this server guards locks by algorithms. If the
	// server crashes, others get the locks that its clients held after this time [6 Election, at
	// least 1.2 s]. Servers may use different values.
	ViewLease time.Duration

	// TLSCert and TLSKey are PEM files; with them clients must use TLS, and so must this process:
	// set Config.TLS. TLSCA, if set, has the authorities that must have signed the certificates of
	// clients.
	TLSCert, TLSKey, TLSCA string
	// ClientCert is "required" or "optional": whether, with TLSCA, a client needs a certificate to
	// pass the TLS handshake ["required"].
	ClientCert string
	// PeerCert, PeerKey and PeerCA make servers use TLS among themselves. Both sides must then show
	// a certificate signed by an authority in PeerCA.
	PeerCert, PeerKey, PeerCA string
	// LookEvery is how often the server checks whether its TLS files have changed and have to be
	// read again [1 min].
	LookEvery time.Duration
	// Insecure allows addresses beyond this machine without TLS.
	Insecure bool
	// Access is "closed" or "open" ["closed"]. It matters only while the cluster has no access rules
	// and other machines can reach Listen: if open, any caller may do everything; if closed, callers
	// on other machines may do nothing.
	Access string

	// StateLimit is the largest size of the replicated state, in bytes, about the size of a
	// snapshot: 16 to 768 MiB [512 MiB]. As the leader this server refuses requests that would make
	// it larger. Renewals, releases and closes always pass.
	StateLimit int
	// Limits bounds what the server keeps in memory; zero values mean the defaults.
	Limits Limits
	// Memory keeps everything in memory and nothing in Config.Dir. It works only in a cluster of one.
	Memory bool

	// Log takes what the server has to say [Config.Logger].
	Log *slog.Logger
	// AdminSocket is the path of a Unix socket. The user who runs the process, and root, may call the
	// server through it as local:ID/UID [admin.sock in Config.Dir; none with Memory].
	AdminSocket string
	// HealthListen is an address that serves only /healthz, /readyz and /metrics, without TLS, for
	// probes that have no certificate [none].
	HealthListen string
	// AuditLog is a file that receives all recorded acts of administration, one line of JSON each,
	// and what this server refuses; "-" is standard output [none].
	AuditLog string
	// AuditRequired makes a server that cannot write its audit log hand leadership over, and refuse
	// administration, new sessions and acquisitions. It never refuses renewals, releases, cancels
	// and closes.
	AuditRequired bool
	// AuditGrants also writes to AuditLog each grant and each end of a hold of the locks and
	// elections whose names start with it; "*" means all [none].
	AuditGrants string
	// AnchorEvery is how often the server logs where its audit records end [1 h].
	AnchorEvery time.Duration
	// Pprof is an address on this machine that serves net/http/pprof [none].
	Pprof string
	// Page, if not nil, serves a web page: at / for clients that accept HTML, and at every other path
	// that the server does not use itself.
	Page http.Handler
	// Version is the version that the server reports ["unknown"].
	Version string
}

// Limits bounds what a server keeps in memory. The default of each limit is in brackets. They are
// for programs with very little memory, and for tests.
type Limits struct {
	// MaxPending bounds the requests that wait to get into the log, and the reads that wait for a
	// quorum round to begin [65,536]. MaxPendingBytes also bounds the former [64 MiB].
	MaxPending, MaxPendingBytes int
	// MaxBatchBytes bounds an entry of the log, in bytes [512 KiB]. MaxInflight bounds the entries of
	// this leader that are not applied yet [4].
	MaxBatchBytes, MaxInflight int
	// SnapshotBytes is the size of the log after which a snapshot is made, in bytes [16 MiB].
	SnapshotBytes int
	// TailEntries is the number of entries before a snapshot that are kept in memory for members that
	// lag a little [5,000, but at most 16 MiB].
	TailEntries int
	// DigestEvery is the number of log entries after which servers compare their states [4,096].
	DigestEvery uint64
	// LevelSoak is how long all members must have been able to read a level of the formats before the
	// cluster changes to it by itself [1 h].
	LevelSoak time.Duration
}

// server returns the settings as the server takes them.
func (m *Member) server(dir string) config.Server {
	return config.Server{
		ID: m.ID, ClusterName: m.ClusterName, Data: dir, Peers: m.Peers, Join: m.Join, JoinTokenFile: m.JoinTokenFile, Learner: m.Learner,
		Listen: m.Listen, Advertise: m.Advertise, PeerListen: m.PeerListen, PeerAdvertise: m.PeerAdvertise,
		Listener: m.Listener, PeerListener: m.PeerListener,
		Preset: m.Preset, Heartbeat: m.Heartbeat, Election: m.Election, ViewLease: m.ViewLease,
		TLSCert: m.TLSCert, TLSKey: m.TLSKey, TLSCA: m.TLSCA, ClientCert: m.ClientCert,
		PeerCert: m.PeerCert, PeerKey: m.PeerKey, PeerCA: m.PeerCA,
		LookEvery: m.LookEvery, Insecure: m.Insecure, Access: m.Access,
		StateLimit: m.StateLimit, Limits: m.Limits.replica(), Memory: m.Memory,
		Log: m.Log, AdminSocket: m.AdminSocket, HealthListen: m.HealthListen,
		AuditLog: m.AuditLog, AuditRequired: m.AuditRequired, AuditGrants: m.AuditGrants, AnchorEvery: m.AnchorEvery,
		Pprof: m.Pprof, Page: m.Page, Version: m.Version,
	}
}

func (l Limits) replica() replica.Config {
	return replica.Config{
		MaxPending: l.MaxPending, MaxPendingBytes: l.MaxPendingBytes, MaxBatchBytes: l.MaxBatchBytes, MaxInflight: l.MaxInflight,
		SnapshotBytes: l.SnapshotBytes, TailEntries: l.TailEntries, DigestEvery: l.DigestEvery, LevelSoak: int64(l.LevelSoak),
	}
}

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "conclave.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func environment(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, given := values[name]
		return v, given
	}
}

func TestFileSetsEverySetting(t *testing.T) {
	t.Parallel()
	var cfg Server
	err := cfg.ReadFile(writeFile(t, `
# A comment.
id = 2
cluster-name = "prod"
data = "d"
listen = "127.0.0.1:1"
advertise = "127.0.0.1:2"
peers = "1=127.0.0.1:3,2=127.0.0.1:4"
peer-listen = "127.0.0.1:5"
peer-advertise = "127.0.0.1:4"
preset = "wan"
heartbeat = "70ms"
election-timeout = "1s"
view-lease = "9s"
tls-cert = "a"
tls-key = "b"
tls-ca = "c"
peer-cert = "e"
peer-key = "f"
peer-ca = "g"
insecure = true
state-limit = "64MiB"
log-level = "warn"
log-format = "json"
health-listen = "0.0.0.0:7410"
pprof = "127.0.0.1:6060"
access = "open"
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Server{
		ID: 2, ClusterName: "prod", Data: "d", Listen: "127.0.0.1:1", Advertise: "127.0.0.1:2",
		Peers: "1=127.0.0.1:3,2=127.0.0.1:4", PeerListen: "127.0.0.1:5", PeerAdvertise: "127.0.0.1:4",
		Preset: "wan", Heartbeat: 70 * time.Millisecond, Election: time.Second, ViewLease: 9 * time.Second,
		TLSCert: "a", TLSKey: "b", TLSCA: "c", PeerCert: "e", PeerKey: "f", PeerCA: "g",
		Insecure: true, StateLimit: 64 << 20, LogLevel: "warn", LogFormat: "json", HealthListen: "0.0.0.0:7410", Pprof: "127.0.0.1:6060", Access: "open",
	}
	if diff := cmp.Diff(want, cfg, cmpopts.IgnoreFields(Server{}, "Limits")); diff != "" {
		t.Error(diff)
	}
}

func TestSizes(t *testing.T) {
	for value, want := range map[string]int{"16777216": 1 << 24, "512MiB": 1 << 29, "600 MiB": 600 << 20, "20000KiB": 20000 << 10, "1GiB": 1 << 30} {
		var cfg Server
		if err := cfg.ReadEnvironment(environment(map[string]string{"CONCLAVE_STATE_LIMIT": value})); err != nil || cfg.StateLimit != want {
			t.Errorf("%q is read as %d, %v", value, cfg.StateLimit, err)
		}
	}
	for _, value := range []string{"0", "-1", "MiB", "512MB", "1.5GiB", "512 mib", "much", "99999999999GiB"} {
		var cfg Server
		err := cfg.ReadEnvironment(environment(map[string]string{"CONCLAVE_STATE_LIMIT": value}))
		if want := fmt.Sprintf("CONCLAVE_STATE_LIMIT: %q: not a size; use a number of bytes, or a unit as in 512MiB", value); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", value, err, want)
		}
	}
}

func TestEnvironmentCountsBeforeTheFile(t *testing.T) {
	var cfg Server
	if err := cfg.ReadFile(writeFile(t, "id = 2\nlisten = \"127.0.0.1:1\"\n")); err != nil {
		t.Fatal(err)
	}
	err := cfg.ReadEnvironment(environment(map[string]string{
		"CONCLAVE_LISTEN": "127.0.0.1:9", "CONCLAVE_ELECTION_TIMEOUT": "3s", "CONCLAVE_INSECURE": "1",
		"CONCLAVE_DATA": "", "CONCLAVE_SERVERS": "not a setting of servers",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if cfg.ID != 2 || cfg.Listen != "127.0.0.1:9" || cfg.Election != 3*time.Second || !cfg.Insecure || cfg.Data != "" {
		t.Errorf("got %+v", cfg)
	}
}

func TestWrongFilesNameTheLine(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"id = 1\n\nlissten = \"127.0.0.1:1\"\n", `:3: unknown key "lissten"`},
		{"id = 1\n[server]\nid = 2\n", `:2: unknown key "server"`},
		{"id = \"one\"\n", `:1: id: "one": must be an integer of at least 1`},
		{"id = -1\n", `:1: id: "-1": must be an integer of at least 1`},
		{"id = 0\n", `:1: id: "0": must be an integer of at least 1`},
		{"# x\nheartbeat = 50\n", `:2: heartbeat: "50": must be a duration above 0s, such as 50ms or 2s`},
		{"insecure = \"maybe\"\n", `:1: insecure: "maybe": must be true or false`},
		{"id = 1\npeers = [\"1=127.0.0.1:1\"]\n", `:2: peers: must be a single value`},
		{"id = 1\nid = 2\n", `:2: `},
		{"id = 1\nlisten = \n", `:2: `},
	} {
		path := writeFile(t, test.text)
		err := new(Server).ReadFile(path)
		if err == nil || !strings.Contains(err.Error(), path+test.want) {
			t.Errorf("%q: got %v, want %s", test.text, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: more than one line: %v", test.text, err)
		}
	}
	if err := new(Server).ReadFile(filepath.Join(t.TempDir(), "none.toml")); err == nil {
		t.Error("a missing file is no error")
	}
}

func TestWrongEnvironmentNamesTheVariable(t *testing.T) {
	err := new(Server).ReadEnvironment(environment(map[string]string{"CONCLAVE_HEARTBEAT": "fast"}))
	if err == nil || !strings.HasPrefix(err.Error(), `CONCLAVE_HEARTBEAT: "fast": must be a duration`) {
		t.Errorf("got %v", err)
	}
}

func TestDefaults(t *testing.T) {
	cfg := Server{}.WithDefaults()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	if cfg.ID != 1 || cfg.Listen != DefaultListen || cfg.Advertise != DefaultListen ||
		cfg.PeerListen != DefaultPeerListen || cfg.Peers != "1="+DefaultPeerListen ||
		cfg.Heartbeat != 50*time.Millisecond || cfg.Election != 200*time.Millisecond || cfg.StateLimit != 512<<20 {
		t.Errorf("got %+v", cfg)
	}
	wan := Server{Preset: "wan"}.WithDefaults()
	if wan.Heartbeat != 500*time.Millisecond || wan.Election != 2*time.Second {
		t.Errorf("wan has %v and %v", wan.Heartbeat, wan.Election)
	}
	own := Server{ID: 2, Peers: "1=127.0.0.1:1,2=127.0.0.1:2"}.WithDefaults()
	if own.PeerListen != "127.0.0.1:2" {
		t.Errorf("server 2 listens for peers at %s", own.PeerListen)
	}
}

func TestWrongConfigurationsAreRefused(t *testing.T) {
	t.Parallel()
	const peers = "1=127.0.0.1:1,2=127.0.0.1:2"
	for _, test := range []struct {
		cfg  Server
		want string
	}{
		{Server{Peers: peers}, "id: missing"},
		{Server{ID: 3, Peers: peers}, "id: 3: not among the peers"},
		{Server{ID: 1, Peers: "1"}, `peers: "1": expected id=host:port`},
		{Server{ID: 1, Peers: "0=127.0.0.1:1"}, `peers: "0=127.0.0.1:1": expected id=host:port with an id of at least 1`},
		{Server{ID: 1, Peers: "1=127.0.0.1:1,1=127.0.0.1:2"}, "peers: server 1: listed twice"},
		{Server{ID: 1, Peers: "1=127.0.0.1:1,2=127.0.0.1:1"}, "peers: 127.0.0.1:1: used by servers 1 and 2"},
		{Server{ID: 1, Peers: "1=127.0.0.1"}, `peers: server 1: "127.0.0.1": expected host:port`},
		{Server{ID: 1, Peers: peers, PeerAdvertise: "127.0.0.1:9"}, "peer-advertise: 127.0.0.1:9: must be the address of server 1 in peers"},
		{Server{ClusterName: "a\nb"}, "cluster-name: "},
		{Server{Listen: "7400"}, `listen: "7400": expected host:port`},
		{Server{Listen: "127.0.0.1:99999"}, `listen: "127.0.0.1:99999": expected host:port`},
		{Server{Advertise: "somewhere"}, `advertise: "somewhere": expected host:port`},
		{Server{Listen: ":7400", Insecure: true}, "advertise: :7400: others cannot connect to this address"},
		{Server{PeerListen: "0.0.0.0:7500", Insecure: true}, "peer-advertise: 0.0.0.0:7500: others cannot connect to this address"},
		{Server{Pprof: "10.0.0.1:6060"}, "pprof: 10.0.0.1:6060: must be an address on this machine"},
		{Server{HealthListen: "7410"}, `health-listen: "7410": expected host:port`},
		{Server{Pprof: "6060"}, `pprof: "6060": expected host:port`},
		{Server{Preset: "moon"}, `preset: "moon": must be lan or wan`},
		{Server{Heartbeat: time.Millisecond}, "heartbeat: 1ms: must be between"},
		{Server{ViewLease: time.Second}, "view-lease: 1s: must be between 1.2s, which a change of leaders may take, and 1m0s"},
		{Server{ViewLease: 2 * time.Minute}, "view-lease: 2m0s: must be between 1.2s"},
		{Server{Election: 2 * time.Second, ViewLease: 10 * time.Second}, "view-lease: 10s: must be between 12s"},
		{Server{Election: 60 * time.Millisecond}, "election-timeout: 60ms: must be between twice the heartbeat"},
		{Server{TLSCert: "a"}, "tls-cert and tls-key: set both or neither"},
		{Server{TLSCA: "a"}, "tls-ca: requires TLS for clients"},
		{Server{ClientCert: "maybe"}, `client-cert: "maybe": must be required or optional`},
		{Server{ClientCert: "optional"}, "client-cert: optional: has no effect without tls-ca"},
		{Server{PeerCert: "a", PeerKey: "b"}, "peer-cert, peer-key and peer-ca: set all three or none"},
		{Server{Listen: "10.0.0.1:7400"}, "listen: 10.0.0.1:7400: other machines can connect without TLS; set --tls-cert and --tls-key, or allow it with --insecure"},
		{Server{Listen: ":7400", Advertise: "10.0.0.1:7400"}, "listen: :7400: other machines can connect without TLS"},
		{Server{Listen: "db.example:7400"}, "listen: db.example:7400: other machines can connect without TLS"},
		{Server{PeerListen: "10.0.0.1:7500"}, "peer-listen: 10.0.0.1:7500: other machines can connect without TLS; set --peer-cert, --peer-key and --peer-ca, or allow it with --insecure"},
		{Server{StateLimit: 16<<20 - 1}, "state-limit: 16777215 bytes: must be between 16MiB and 768MiB"},
		{Server{StateLimit: 1 << 30}, "state-limit: 1073741824 bytes: must be between 16MiB and 768MiB"},
		{Server{LogLevel: "loud"}, `log-level: "loud": must be debug, info, warn or error`},
		{Server{Access: "half"}, `access: "half": must be closed or open`},
		{Server{LogFormat: "xml"}, `log-format: "xml": must be text or json`},
	} {
		err := test.cfg.WithDefaults().Validate()
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%+v: got %v, want %s", test.cfg, err, test.want)
		}
	}
}

func TestRightConfigurationsAreTaken(t *testing.T) {
	for _, cfg := range []Server{
		{Listen: "localhost:7400"},
		{Listen: "[::1]:7400"},
		{Listen: "10.0.0.1:7400", Insecure: true},
		{Listen: "10.0.0.1:7400", TLSCert: "a", TLSKey: "b"},
		{Listen: ":7400", Advertise: "10.0.0.1:7400", Insecure: true},
		{ID: 2, Peers: "1=10.0.0.1:7500, 2=10.0.0.2:7500", PeerListen: "0.0.0.0:7500", PeerCert: "a", PeerKey: "b", PeerCA: "c"},
		{Pprof: "localhost:6060"},
	} {
		if err := cfg.WithDefaults().Validate(); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestIdentityOfTheCluster(t *testing.T) {
	t.Parallel()
	identity := func(cfg Server) uint64 {
		t.Helper()
		id, err := cfg.WithDefaults().Cluster()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	base := identity(Server{ID: 1, ClusterName: "a", Peers: "1=127.0.0.1:1,2=127.0.0.1:2"})
	if other := identity(Server{ID: 2, ClusterName: "a", Peers: "2=127.0.0.1:2, 1=127.0.0.1:1", Data: "x"}); other != base {
		t.Errorf("the order of peers changes the identity: %x and %x", base, other)
	}
	for _, other := range []Server{
		{ID: 1, ClusterName: "b", Peers: "1=127.0.0.1:1,2=127.0.0.1:2"},
		{ID: 1, ClusterName: "a", Peers: "1=127.0.0.1:1,2=127.0.0.1:3"},
		{ID: 1, ClusterName: "a", Peers: "1=127.0.0.1:1"},
	} {
		if identity(other) == base {
			t.Errorf("%+v has the same identity", other)
		}
	}
	// Whoever changes the formula takes every data directory out of service.
	if got := FormatCluster(base); got != "1fa72fd2415bf199" {
		t.Errorf("the identity is %s", got)
	}
}

package server_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// serial is that of the certificate which a server shows in a new handshake.
func serial(t *testing.T, address string, trusted *tls.Config) string {
	t.Helper()
	conn, err := tls.Dial("tcp", address, trusted)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// serialIn is that of the certificate in a file.
func serialIn(t *testing.T, cert, key string) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf.SerialNumber.String()
}

func replaceFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestReload replaces the certificate of a running server. An invalid certificate does
// not replace the previous one.
func TestReload(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	c := servertest.Start(t, 1, authority.Secure)
	s, address, program := c.Server(1), c.Address(1), authority.Client("program")
	cfg := s.Config()
	stream := attach(t, dial(t, address, program))
	stream.do(open(time.Minute), api.Code_CODE_OK)
	first := serial(t, address, program)

	authority.Issue("server")
	second := serialIn(t, cfg.TLSCert, cfg.TLSKey)
	if got := serial(t, address, program); got != first {
		t.Errorf("before the files are read again the server shows %s, want %s", got, first)
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := serial(t, address, program); got != second || got == first {
		t.Errorf("the server shows %s, want %s", got, second)
	}

	key := content(t, cfg.TLSKey)
	refused := func(what, want string) {
		t.Helper()
		if err := s.Reload(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
		if got := serial(t, address, program); got != second {
			t.Errorf("%s: the server shows %s, want %s as before", what, got, second)
		}
	}
	authority.IssueUntil("server", time.Now().Add(-time.Minute))
	refused("an expired pair", "tls-cert: "+cfg.TLSCert+": expired on ")
	authority.Issue("server")
	replaceFile(t, cfg.TLSKey, key)
	refused("a pair of which one half was replaced", "private key does not match")
	replaceFile(t, cfg.TLSCert, []byte("half of a fi"))
	refused("a file that is half written", "tls-cert "+cfg.TLSCert)
	if err := os.Remove(cfg.TLSCert); err != nil {
		t.Fatal(err)
	}
	refused("a file that is gone", "no such file")

	authority.Issue("server")
	third := serialIn(t, cfg.TLSCert, cfg.TLSKey)
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := serial(t, address, program); got != third {
		t.Errorf("the server shows %s, want %s", got, third)
	}
	// The stream from before all this is served on.
	stream.do(&api.Request{Op: &api.Request_Renew{Renew: &api.Renew{}}}, api.Code_CODE_OK)

	web := http.Client{Transport: &http.Transport{TLSClientConfig: program}, Timeout: limit}
	defer web.CloseIdleConnections()
	resp, err := web.Get("https://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for result, count := range map[string]int{"ok": 2, "failed": 4} {
		if want := fmt.Sprintf("conclave_certificate_reloads_total{result=%q} %d\n", result, count); !strings.Contains(string(text), want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// TestReloadByItself: nobody needs to tell a server that its files have changed.
func TestReloadByItself(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	c := servertest.Start(t, 1, authority.Secure, func(cfg *config.Server) { cfg.LookEvery = 10 * time.Millisecond })
	cfg, program := c.Server(1).Config(), authority.Client("program")
	authority.Issue("server")
	want := serialIn(t, cfg.TLSCert, cfg.TLSKey)
	servertest.Eventually(t, "the server shows the new certificate", func() bool {
		return serial(t, c.Address(1), program) == want
	})
}

// TestAnotherAuthority moves a running cluster from one authority to another: first all
// trust both, then all get certificates of the new one, then the old one is removed.
func TestAnotherAuthority(t *testing.T) {
	t.Parallel()
	before, after := servertest.NewAuthority(t), servertest.NewAuthority(t)
	var cfg config.Server // names the files, which all servers share
	before.Secure(&cfg)
	c := servertest.Start(t, 3, func(each *config.Server) {
		each.TLSCert, each.TLSKey, each.TLSCA = cfg.TLSCert, cfg.TLSKey, cfg.TLSCA
		each.PeerCert, each.PeerKey, each.PeerCA = cfg.PeerCert, cfg.PeerKey, cfg.PeerCA
	})
	stream := attach(t, dial(t, c.Address(c.Leader()), before.Client("program")))
	stream.do(open(time.Minute), api.Code_CODE_OK)
	reload := func() {
		t.Helper()
		for id := 1; id <= 3; id++ {
			if err := c.Server(id).Reload(); err != nil {
				t.Fatal(err)
			}
		}
	}
	replaceFile(t, cfg.PeerCA, slices.Concat(content(t, before.File), content(t, after.File)))
	reload()
	for name, files := range map[string][2]string{"server": {cfg.TLSCert, cfg.TLSKey}, "peer": {cfg.PeerCert, cfg.PeerKey}} {
		cert, key := after.Issue(name)
		replaceFile(t, files[0], content(t, cert))
		replaceFile(t, files[1], content(t, key))
	}
	reload()
	replaceFile(t, cfg.PeerCA, content(t, after.File))
	reload()

	// New links between the servers, and calls that are passed on, go by the new one:
	// a server that was started with nothing else takes part.
	follower := c.Follower()
	c.Stop(follower)
	c.Restart(follower)
	servertest.Eventually(t, "the follower is connected", func() bool {
		return len(c.Server(follower).Node().Connected()) == 2 && c.Server(follower).Leader() != 0
	})
	client := dial(t, c.Address(follower), after.Client("program"))
	once(t, client, newSession(), open(time.Minute), api.Code_CODE_OK) // is passed on
	other := 6 - follower - c.Leader()
	client = dial(t, c.Address(other), after.Client("program"))
	once(t, client, newSession(), open(time.Minute), api.Code_CODE_OK)
}

// TestStatusTellsOfCertificates: one server tells when the certificates of all expire.
func TestStatusTellsOfCertificates(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	first := time.Now().Add(20 * time.Minute).Truncate(time.Second)
	c := servertest.Start(t, 3, authority.Secure, func(cfg *config.Server) {
		if cfg.ID == 3 {
			cfg.PeerCert, cfg.PeerKey = authority.IssueUntil("third", first)
		}
	})
	client := dial(t, c.Address(1), authority.Client("program"))
	servertest.Eventually(t, "server 1 tells of all certificates", func() bool {
		s, err := client.Status(within(t), &api.StatusRequest{Certificates: true})
		if err != nil {
			t.Fatal(err)
		}
		known := 0
		for _, m := range s.GetMembers() {
			expires := time.Unix(0, m.GetCertificateExpiresUnixNs())
			switch {
			case m.GetCertificateExpiresUnixNs() == 0:
			case (m.GetId() == 3) != expires.Equal(first):
				t.Fatalf("the certificate of server %d expires at %v", m.GetId(), expires)
			default:
				known++
			}
		}
		return known == 3
	})
}

package attack

import (
	"crypto/tls"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// peersThatExpire lets the certificates between servers expire. The cluster keeps its existing
// connections, and accepts no new ones until the files are replaced.
func peersThatExpire(w *world) {
	const valid = 8 * time.Second
	log, authority := new(journal), servertest.NewAuthority(w)
	end := time.Now().Add(valid).Truncate(time.Second)
	cluster := servertest.Start(w, 3, authority.Secure, func(cfg *config.Server) {
		cfg.PeerCert, cfg.PeerKey = authority.IssueUntil("peer", end)
		cfg.Log = slog.New(slog.NewTextHandler(log, nil))
		cfg.LookEvery = 50 * time.Millisecond
	})
	var servers []string
	for id := 1; id <= 3; id++ {
		servers = append(servers, cluster.Address(id))
	}
	client, err := conclave.Dial(w.Context(), conclave.Config{Servers: servers, TLS: authority.Client("program")})
	if err != nil {
		w.Fatal(err)
	}
	defer client.Close()
	held, err := client.Lock(w.within(), "kept")
	if err != nil {
		w.Fatal(err)
	}
	// The attacker has the certificate of a server.
	cfg := cluster.Server(1).Config()
	pair, err := tls.LoadX509KeyPair(cfg.PeerCert, cfg.PeerKey)
	if err != nil {
		w.Fatal(err)
	}
	address := cluster.Server(1).PeerAddr().String()
	stolen := &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
	if err := handshake(address, stolen); err != nil {
		w.Fatalf("while the certificate is good the handshake ends with %v", err)
	}
	servertest.Eventually(w, "the certificates have expired", func() bool { return time.Now().After(end.Add(time.Second)) })

	if err := handshake(address, stolen); err == nil || !strings.Contains(err.Error(), "expired certificate") {
		w.Errorf("with an expired certificate the handshake ends with %v", err)
	}
	if err := handshake(address, authority.Trusting()); err == nil || !strings.Contains(err.Error(), "certificate has expired") {
		w.Errorf("a server is taken that shows an expired certificate: %v", err)
	}
	servertest.Eventually(w, "the log says that the certificates have expired", func() bool {
		return strings.Count(log.String(), "the certificate for peers has expired") >= 3
	})
	for _, name := range []string{"a", "b", "c"} {
		l, err := client.Lock(w.within(), name)
		if err != nil {
			w.Fatalf("with expired certificates of servers: %v", err)
		}
		if err := l.Unlock(w.within()); err != nil {
			w.Error(err)
		}
	}
	if err := held.Context().Err(); err != nil {
		w.Errorf("the holder has lost its lock: %v", err)
	}

	authority.Issue("peer")
	servertest.Eventually(w, "the server shows its new certificate", func() bool {
		renewed := authority.Trusting()
		if renewed.Certificates = []tls.Certificate{pairOf(w, cfg.PeerCert, cfg.PeerKey)}; handshake(address, renewed) != nil {
			return false
		}
		return held.Context().Err() == nil
	})
}

func pairOf(w *world, cert, key string) tls.Certificate {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		w.Fatal(err)
	}
	return pair
}

// handshake does a TLS handshake with a server. With TLS 1.3, the server checks the certificate of
// the client after the client's handshake has ended. So handshake also waits for an alert.
func handshake(address string, cfg *tls.Config) error {
	conn, err := tls.Dial("tcp", address, cfg)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	if _, err := conn.Read(make([]byte, 1)); !os.IsTimeout(err) {
		return err
	}
	return nil
}

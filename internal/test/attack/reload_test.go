package attack

import (
	"crypto/tls"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// reloads is the number of times that all servers reload their files under load.
const reloads = 100

// authorities is a cluster whose servers trust two certificate authorities, for clients and for
// servers. Server 3 has a peer certificate of the authority that is removed later.
type authorities struct {
	*world
	stays, goes *servertest.Authority
	cluster     *servertest.Cluster
	ca          string // the file with the certificates of both
}

func (w *world) trustingTwo() *authorities {
	w.Helper()
	a := &authorities{world: w, stays: servertest.NewAuthority(w), goes: servertest.NewAuthority(w), ca: w.TempDir() + "/ca.pem"}
	a.write(a.ca, slices.Concat(a.read(a.stays.File), a.read(a.goes.File)))
	peer, key := a.goes.Issue("peer")
	a.cluster = servertest.Start(w, 3, a.stays.Secure, func(cfg *config.Server) {
		cfg.TLSCA, cfg.PeerCA = a.ca, a.ca
		if cfg.ID == 3 {
			cfg.PeerCert, cfg.PeerKey = peer, key
		}
	})
	return a
}

func (w *world) read(path string) []byte {
	w.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		w.Fatal(err)
	}
	return b
}

func (w *world) write(path string, content []byte) {
	w.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		w.Fatal(err)
	}
}

// program returns a client with a certificate of an authority.
func (a *authorities) program(of *servertest.Authority) *conclave.Client {
	a.Helper()
	client, err := conclave.Dial(a.within(), conclave.Config{Servers: a.cluster.Addresses(), TLS: a.showing(of), TTL: 30 * time.Second})
	if err != nil {
		a.Fatal(err)
	}
	a.Cleanup(func() { client.Close() })
	return client
}

func (a *authorities) showing(of *servertest.Authority) *tls.Config {
	a.Helper()
	cfg := of.Client("program")
	cfg.RootCAs = a.stays.Trusting().RootCAs
	return cfg
}

// reload makes all servers reload their files. bad means that the files are invalid.
func (a *authorities) reload(bad bool) {
	a.Helper()
	for id := 1; id <= 3; id++ {
		if err := a.cluster.Server(id).Reload(); (err != nil) != bad {
			a.Errorf("server %d reads its files again: %v", id, err)
		}
	}
}

// replaceUnderLoad reloads certificates many times while programs take locks. Some of the new files
// are valid, and others are not. Then one of two authorities is removed.
func replaceUnderLoad(w *world) {
	a := w.trustingTwo()
	client := a.program(a.stays)
	held, err := client.Lock(a.within(), "kept")
	if err != nil {
		a.Fatal(err)
	}
	stop, load := make(chan struct{}), sync.WaitGroup{}
	load.Go(func() { a.takeLocks(client, stop) })
	a.replaceOften()
	a.removeAuthority()
	close(stop)
	load.Wait()
	if err := held.Context().Err(); err != nil {
		a.Errorf("the lock that was held all the time is lost: %v", err)
	}
}

// takeLocks takes locks until stop is closed.
func (a *authorities) takeLocks(client *conclave.Client, stop chan struct{}) {
	taken := 0
	for ; ; taken++ {
		select {
		case <-stop:
			a.Logf("%d locks were taken meanwhile", taken)
			if taken == 0 {
				a.Error("there was no load")
			}
			return
		default:
		}
		l, err := client.Lock(a.within(), fmt.Sprint("x", taken%4))
		if err == nil {
			err = l.Unlock(a.within())
		}
		if err != nil {
			a.Error(err)
			return
		}
	}
}

// replaceOften replaces the files that two of the servers share.
func (a *authorities) replaceOften() {
	a.Helper()
	cfg := a.cluster.Config(1)
	program := a.showing(a.stays)
	for i := range reloads {
		switch i % 4 {
		case 0:
			a.stays.Issue("server")
			a.stays.Issue("peer")
			a.reload(false)
			continue
		case 1: // a certificate without its key
			cert := a.read(cfg.TLSCert)
			a.stays.Issue("server")
			a.write(cfg.TLSCert, cert)
		case 2:
			a.stays.IssueUntil("server", time.Now().Add(-time.Minute))
		case 3:
			a.write(cfg.TLSCert, []byte("nothing"))
		}
		a.reload(true)
		conn, err := tls.Dial("tcp", a.cluster.Address(1), program)
		if err != nil {
			a.Fatalf("with files of no use a server does not show those from before: %v", err)
		}
		conn.Close()
	}
	a.stays.Issue("server")
	a.reload(false)
}

// removeAuthority removes the authority that issued certificates for a program and for a server.
func (a *authorities) removeAuthority() {
	a.Helper()
	stranger := a.program(a.goes)
	if _, err := stranger.Lock(a.within(), "of the stranger"); err != nil {
		a.Fatal(err)
	}
	again := a.showing(a.goes)
	again.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	for range 2 {
		if err := handshake(a.cluster.Address(1), again); err != nil {
			a.Fatal(err)
		}
	}
	raw, err := tls.Dial("tcp", a.cluster.Address(1), again)
	if err != nil {
		a.Fatal(err)
	}
	defer raw.Close()
	a.write(a.ca, a.read(a.stays.File))
	a.reload(false)
	if err := raw.SetReadDeadline(time.Now().Add(testTimeout)); err != nil {
		a.Fatal(err)
	}
	if _, err := raw.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		a.Errorf("a connection stays that the authority vouched for: %v", err)
	}
	servertest.Eventually(a.T, "the program is cut", func() bool { return stranger.Server() == "" })
	if err := handshake(a.cluster.Address(1), again); err == nil {
		a.Error("a session of TLS is taken up again that the authority vouched for")
	}
	servertest.Eventually(a.T, "server 3 is cut", func() bool {
		for id := 1; id <= 2; id++ {
			if slices.Contains(a.cluster.Server(id).Node().Connected(), 3) {
				return false
			}
		}
		return len(a.cluster.Server(3).Node().Connected()) == 0
	})
}

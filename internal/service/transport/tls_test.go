package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// authority issues certificates for servers on 127.0.0.1.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pool        *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	a.key = newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.certificate = sign(t, template, template, a.key, a.key)
	a.pool.AddCert(a.certificate)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, template, parent *x509.Certificate, subject, issuer *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &subject.PublicKey, issuer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func (a *authority) issue(t testing.TB) tls.Certificate {
	return a.issueFor(t, "127.0.0.1")
}

// issueFor issues a certificate that is valid for an address, and has the URIs.
func (a *authority) issueFor(t testing.TB, ip string, uris ...string) tls.Certificate {
	t.Helper()
	key := newKey(t)
	var names []*url.URL
	for _, uri := range uris {
		name, err := url.Parse(uri)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	certificate := sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test server"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP(ip)}, URIs: names,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.certificate, key, a.key)
	return tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

// secure lets a server use a certificate of a.
func (a *authority) secure(t testing.TB, c *Config) {
	certificates := []tls.Certificate{a.issue(t)}
	c.ServerTLS = &tls.Config{Certificates: certificates, ClientCAs: a.pool, ClientAuth: tls.RequireAndVerifyClientCert}
	client := &tls.Config{Certificates: certificates, RootCAs: a.pool}
	c.ClientTLS = func() *tls.Config { return client }
}

func TestMutualTLS(t *testing.T) {
	ca := newAuthority(t)
	a, b := pair(t, func(c *Config) { ca.secure(t, c) })
	a.Send([]*raftpb.Message{heartbeat(1, 2, 1)})
	b.Send([]*raftpb.Message{heartbeat(2, 1, 2)})
	eventually(t, "messages arrive both ways", func() bool {
		return slices.Equal(b.indexes(), []uint64{1}) && slices.Equal(a.indexes(), []uint64{2})
	})
	a.Send([]*raftpb.Message{snapshotMessage(1, 2, pattern(3*chunkBytes))})
	eventually(t, "a snapshot arrives", func() bool { return slices.Equal(get(a.recorder, &a.snapshots), []string{"2 true"}) })
}

// TestClientWithoutCertificate knows the authority, and has nothing to show.
func TestClientWithoutCertificate(t *testing.T) {
	ca := newAuthority(t)
	s := alone(t, func(c *Config) { ca.secure(t, c) })
	err := tlsVisit(t, s, &tls.Config{RootCAs: ca.pool})
	if err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("the visit ends with %v", err)
	}
	eventually(t, "it is logged", func() bool {
		return s.journal.count("refused a connection to the peer port", "client didn't provide a certificate") == 1
	})
}

func TestClientOfAnotherAuthority(t *testing.T) {
	ca, stranger := newAuthority(t), newAuthority(t)
	s := alone(t, func(c *Config) { ca.secure(t, c) })
	err := tlsVisit(t, s, &tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{stranger.issue(t)}})
	if err == nil {
		t.Error("the visitor is let in")
	}
	eventually(t, "it is logged", func() bool {
		return s.journal.count("refused a connection to the peer port", "TLS: ") == 1
	})
	if met := get(s.recorder, &s.met); len(met) != 0 {
		t.Errorf("the handler met %v", met)
	}
}

// tlsVisit introduces itself over TLS and returns why that failed.
func tlsVisit(t *testing.T, s *server, cfg *tls.Config) error {
	t.Helper()
	cfg.ServerName = "127.0.0.1"
	raw, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if err := raw.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	l := newConnection(raw, tls.Client(raw, cfg))
	if err := l.write(kindHello, visitHello().Append(nil), nil, true); err != nil {
		return err
	}
	_, _, err = l.read()
	return err
}

// TestServerOfAnotherAuthority is dialled and not believed.
func TestServerOfAnotherAuthority(t *testing.T) {
	ca, stranger := newAuthority(t), newAuthority(t)
	b := alone(t, func(c *Config) { stranger.secure(t, c) })
	cfg := config(2, listen(t, "127.0.0.1:0"), map[uint64]string{1: b.address})
	ca.secure(t, &cfg)
	a := launch(t, cfg)
	eventually(t, "the dialler says why", func() bool {
		return a.journal.count("cannot reach a peer", "certificate signed by unknown authority") == 1
	})
	if up := a.Transport.Connected(); len(up) != 0 {
		t.Errorf("%v are connected", up)
	}
}

// TestOneSideWithoutTLS says on the side that can know what is wrong.
func TestOneSideWithoutTLS(t *testing.T) {
	ca := newAuthority(t)
	plain := alone(t, nil)
	cfg := config(2, listen(t, "127.0.0.1:0"), map[uint64]string{1: plain.address})
	ca.secure(t, &cfg)
	secured := launch(t, cfg)
	plain.SetPeer(2, secured.address)
	eventually(t, "the plain server says what it sees", func() bool {
		return plain.journal.count("it looks like TLS, which this server does not use") == 1
	})
	eventually(t, "the secured server says what it sees", func() bool {
		return secured.journal.count("first record does not look like a TLS handshake") > 0
	})
}

package servertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/config"
)

// Authority is a certificate authority for one test.
type Authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// File is the file with its certificate.
	File string
}

// NewAuthority returns a new authority that only the test trusts.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: t.TempDir()}
	a.key = newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.File = a.write("ca.pem", "CERTIFICATE", der)
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

func (a *Authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// Issue creates a certificate for this machine and its key, and returns their files. It
// replaces files issued before under the same name. Each change may change the certificate.
func (a *Authority) Issue(name string, changes ...func(*x509.Certificate)) (cert, key string) {
	a.t.Helper()
	secret := newKey(a.t)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, change := range changes {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &secret.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(name+".pem", "CERTIFICATE", der), a.write(name+".key", "PRIVATE KEY", private)
}

// IssueUntil is like Issue, for a certificate that expires at end.
func (a *Authority) IssueUntil(name string, end time.Time) (cert, key string) {
	a.t.Helper()
	return a.Issue(name, func(c *x509.Certificate) { c.NotAfter = end })
}

// Client returns the TLS configuration of a client that trusts this authority and has a
// certificate from it.
func (a *Authority) Client(name string, changes ...func(*x509.Certificate)) *tls.Config {
	a.t.Helper()
	cert, key := a.Issue(name, changes...)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		a.t.Fatal(err)
	}
	cfg := a.Trusting()
	cfg.Certificates = []tls.Certificate{pair}
	return cfg
}

// Trusting returns the TLS configuration of a client that trusts this authority and has no
// certificate.
func (a *Authority) Trusting() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// Secure makes all servers of a cluster use TLS among themselves and towards clients, who
// must show certificates too. Use it as an adjust of Start.
func (a *Authority) Secure(cfg *config.Server) {
	cfg.TLSCert, cfg.TLSKey = a.Issue("server")
	cfg.TLSCA = a.File
	cfg.PeerCert, cfg.PeerKey = a.Issue("peer")
	cfg.PeerCA = a.File
}

package authority

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const day = 24 * time.Hour

func made(t *testing.T) (*Authority, *x509.CertPool) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new", "certs")
	if _, err := Create(dir, "test", 10*day); err != nil {
		t.Fatal(err)
	}
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return a, roots
}

// leaf reads a pair back, as a server or a client does.
func leaf(t *testing.T, pair Pair, err error) *x509.Certificate {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	if !loaded.Leaf.NotAfter.Equal(pair.Expires) {
		t.Errorf("%s expires on %v, and was said to on %v", pair.Cert, loaded.Leaf.NotAfter, pair.Expires)
	}
	return loaded.Leaf
}

// verified reports whether a certificate is good for a use now.
func verified(cert *x509.Certificate, roots *x509.CertPool, use x509.ExtKeyUsage) bool {
	_, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{use}})
	return err == nil
}

func TestServerAndClient(t *testing.T) {
	a, roots := made(t)
	pair, err := a.Server(Server{ID: 2, Hosts: []string{"10.0.0.2", "db2.example.com"}, Cluster: "68b1d2f03c5e4a97"}, day)
	server := leaf(t, pair, err)
	pair, err = a.Client("alice", day)
	client := leaf(t, pair, err)

	for _, c := range []struct {
		cert             *x509.Certificate
		asServer, asUser bool
	}{{server, true, true}, {client, false, true}} {
		name := c.cert.Subject.CommonName
		if verified(c.cert, roots, x509.ExtKeyUsageServerAuth) != c.asServer || verified(c.cert, roots, x509.ExtKeyUsageClientAuth) != c.asUser {
			t.Errorf("%s is not good for what it should be, or for more", name)
		}
		if c.cert.IsCA || c.cert.KeyUsage&x509.KeyUsageCertSign != 0 {
			t.Errorf("%s may sign others", name)
		}
	}
	for _, host := range []string{"10.0.0.2", "db2.example.com"} {
		if err := server.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	if len(server.URIs) != 1 || server.URIs[0].String() != "conclave://68b1d2f03c5e4a97/2" {
		t.Errorf("the server has the URIs %v", server.URIs)
	}
	if client.Subject.CommonName != "alice" || client.SerialNumber.Cmp(server.SerialNumber) == 0 {
		t.Errorf("the client is %v with serial %v, the server has %v", client.Subject, client.SerialNumber, server.SerialNumber)
	}
	if other, _ := made(t); slices.Equal(other.cert.Raw, a.cert.Raw) || verified(client, func() *x509.CertPool {
		pool := x509.NewCertPool()
		pool.AddCert(other.cert)
		return pool
	}(), x509.ExtKeyUsageClientAuth) {
		t.Error("another authority vouches for the client")
	}
}

func TestNothingIsReplaced(t *testing.T) {
	a, _ := made(t)
	pair, err := a.Client("alice", day)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(pair.Cert); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Client("alice", day); err == nil || !strings.Contains(err.Error(), "alice.key: already exists") {
		t.Errorf("the key was there: %v", err)
	}
	if after, err := os.ReadFile(pair.Key); err != nil || !slices.Equal(before, after) {
		t.Errorf("the key is another one: %v", err)
	}
	if _, err := os.Stat(pair.Cert); err == nil {
		t.Error("half a pair was made")
	}
	if _, err := Create(a.dir, "again", day); err == nil {
		t.Error("an authority was replaced")
	}
}

// Package authority makes a private certificate authority and signs certificates of
// servers and clients with it: enough for tests and small clusters. It keeps no list of
// what it signed and revokes nothing; a certificate ends when it expires.
package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

const (
	// CertFile and KeyFile are the files of an authority in its directory.
	CertFile = "ca.pem"
	KeyFile  = "ca.key"

	// skew is how far the clocks of other machines may be behind.
	skew = 5 * time.Minute
)

// Authority signs certificates.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  crypto.PrivateKey
}

// Pair is a certificate and its private key, as files.
type Pair struct {
	Cert, Key string
	Expires   time.Time
}

// Create makes a directory, unless it exists, with a new authority in it.
func Create(dir, name string, valid time.Duration) (Pair, error) {
	pair, err := place(dir, CertFile, KeyFile)
	if err != nil {
		return Pair{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Pair{}, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name},
		IsCA:    true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	return sign(pair, template, valid, nil)
}

// Open returns the authority in a directory.
func Open(dir string) (*Authority, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, CertFile), filepath.Join(dir, KeyFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no authority in this directory; create one with conclave cert authority %s", dir, dir)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", dir, err)
	case !pair.Leaf.IsCA:
		return nil, fmt.Errorf("%s: not the certificate of an authority; expected one that may sign others", filepath.Join(dir, CertFile))
	}
	return &Authority{dir, pair.Leaf, pair.PrivateKey}, nil
}

// Expires returns when the certificate of the authority, and with it all that it has
// signed, stops being valid.
func (a *Authority) Expires() time.Time { return a.cert.NotAfter }

// Server is what the certificate of a server says.
type Server struct {
	ID uint64
	// Hosts are the names and IP addresses at which it is reached.
	Hosts []string
	// Cluster adds the URI conclave://CLUSTER/ID, if it is not empty.
	Cluster string
}

// Server signs the certificate of a server, which is good towards clients and towards
// other servers.
func (a *Authority) Server(s Server, valid time.Duration) (Pair, error) {
	name := fmt.Sprintf("server-%d", s.ID)
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range s.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	if s.Cluster != "" {
		template.URIs = []*url.URL{{Scheme: "conclave", Host: s.Cluster, Path: fmt.Sprint("/", s.ID)}}
	}
	return a.issue(name, template, valid)
}

// Client signs the certificate of a program or a person, who then is cert:NAME. The
// file is called after it.
func (a *Authority) Client(name string, valid time.Duration) (Pair, error) {
	return a.issue(name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, valid)
}

func (a *Authority) issue(name string, template *x509.Certificate, valid time.Duration) (Pair, error) {
	pair, err := place(a.dir, name+".pem", name+".key")
	if err != nil {
		return Pair{}, err
	}
	return sign(pair, template, valid, a)
}

// place names the files of a pair. Neither may exist, because a replaced key is lost.
func place(dir, cert, key string) (Pair, error) {
	pair := Pair{Cert: filepath.Join(dir, cert), Key: filepath.Join(dir, key)}
	for _, path := range []string{pair.Cert, pair.Key} {
		if _, err := os.Lstat(path); err == nil {
			return pair, fmt.Errorf("%s: already exists; move it away first", path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return pair, err
		}
	}
	return pair, nil
}

// sign draws a key and writes both files. Without an authority the certificate is signed
// by its own key.
func sign(pair Pair, template *x509.Certificate, valid time.Duration, by *Authority) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair, err
	}
	now := time.Now().Truncate(time.Second)
	template.NotBefore, template.NotAfter = now.Add(-skew), now.Add(valid)
	pair.Expires = template.NotAfter.UTC()
	if by == nil {
		by = &Authority{cert: template, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key.Public(), by.key)
	if err != nil {
		return pair, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair, err
	}
	if err := write(pair.Key, 0o600, "PRIVATE KEY", private); err != nil {
		return pair, err
	}
	if err := write(pair.Cert, 0o644, "CERTIFICATE", der); err != nil {
		return pair, errors.Join(err, os.Remove(pair.Key))
	}
	return pair, nil
}

// write makes a file that does not exist yet.
func write(path string, mode fs.FileMode, kind string, der []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	err = pem.Encode(file, &pem.Block{Type: kind, Bytes: der})
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

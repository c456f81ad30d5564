package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
)

// secrets are the TLS configurations of a server; nil leaves traffic in the
// clear.
type secrets struct {
	// clients is for taking clients, leader for passing calls on.
	clients, leader *tls.Config
	// peerServer and peerClient are for the traffic between servers.
	peerServer, peerClient *tls.Config
}

func (c Config) loadSecrets() (s secrets, err error) {
	if c.TLSCert != "" {
		if s.clients, s.leader, err = c.clientSecrets(); err != nil {
			return s, err
		}
	}
	if c.PeerCert != "" {
		s.peerServer, s.peerClient, err = c.peerSecrets()
	}
	return s, err
}

func (c Config) clientSecrets() (clients, leader *tls.Config, err error) {
	own, err := loadPair("tls", c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, nil, err
	}
	clients = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}}
	leader = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}}
	if c.TLSCA != "" {
		if clients.ClientCAs, err = loadAuthorities("tls-ca", c.TLSCA); err != nil {
			return nil, nil, err
		}
		clients.ClientAuth = tls.RequireAndVerifyClientCert
		leader.RootCAs = clients.ClientCAs
	} else {
		// Whoever vouches for this server does so for the others, as a rule.
		leader.RootCAs = trusted(own)
	}
	preferHTTP1(clients)
	return clients, leader, nil
}

// trusted returns the authorities of the system and the chain of a certificate.
func trusted(own tls.Certificate) *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	for _, der := range own.Certificate {
		if cert, err := x509.ParseCertificate(der); err == nil {
			pool.AddCert(cert)
		}
	}
	return pool
}

// preferHTTP1 gives http/1.1 to whoever offers it, and h2 to the others, which
// are the gRPC clients. A browser offers both: it must not end up with gRPC.
func preferHTTP1(cfg *tls.Config) {
	other := cfg.Clone()
	other.NextProtos = []string{"h2"}
	cfg.NextProtos = []string{"http/1.1"}
	first := cfg.Clone()
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if slices.Contains(hello.SupportedProtos, "http/1.1") {
			return first, nil
		}
		return other, nil
	}
}

func (c Config) peerSecrets() (server, client *tls.Config, err error) {
	own, err := loadPair("peer", c.PeerCert, c.PeerKey)
	if err != nil {
		return nil, nil, err
	}
	authorities, err := loadAuthorities("peer-ca", c.PeerCA)
	if err != nil {
		return nil, nil, err
	}
	server = &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own},
		ClientCAs: authorities, ClientAuth: tls.RequireAndVerifyClientCert,
	}
	client = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, RootCAs: authorities}
	return server, client, nil
}

func loadPair(kind, cert, key string) (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return pair, fmt.Errorf("%s-cert %s, %s-key %s: %w", kind, cert, kind, key, err)
	}
	return pair, nil
}

func loadAuthorities(key, path string) (*x509.CertPool, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s: %s has no certificate in PEM", key, path)
	}
	return pool, nil
}

package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
)

// uriScheme is the scheme of the URI that names a server in a certificate, whatever its
// address: conclave://CLUSTER/ID, with the cluster as 16 hexadecimal digits.
const uriScheme = "conclave"

// certify returns an error if a certificate with a valid signature does not belong to a server
// at an address. It must name the server by a URI, or otherwise be valid for the host of the
// address. Without this check any certificate of the authority would be accepted, even that of
// a client.
func (t *Transport) certify(cert *x509.Certificate, server uint64, address string) error {
	want := fmt.Sprintf("%s://%016x/%d", uriScheme, t.cfg.Self.Cluster, server)
	uri := ""
	for _, u := range cert.URIs {
		switch {
		case u.Scheme != uriScheme:
		case uri != "":
			return fmt.Errorf("server %d at %s: its certificate has more than one URI conclave://: use a certificate with one", server, address)
		default:
			uri = u.String()
		}
	}
	switch uri {
	case "":
		return certifyHost(cert, server, address, want)
	case want:
		return nil
	}
	return fmt.Errorf("server %d at %s: its certificate has the URI %+.100q: expected %s", server, address, uri, want)
}

// certifiedHost returns the host in the address of a server, without the zone of an IPv6 address: no
// certificate has that.
func certifiedHost(server uint64, address string) (string, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("the address of server %d: %w", server, err)
	}
	host, _, _ = strings.Cut(host, "%")
	return host, nil
}

func certifyHost(cert *x509.Certificate, server uint64, address, uri string) error {
	host, err := certifiedHost(server, address)
	if err != nil {
		return err
	}
	if cert.VerifyHostname(host) == nil {
		return nil
	}
	return fmt.Errorf("server %d at %s: its certificate is valid for %+.200q, not for %s: use a certificate for that host, or with the URI %s",
		server, address, hosts(cert), host, uri)
}

// hosts lists the hosts for which a certificate is valid.
func hosts(cert *x509.Certificate) string {
	names := cert.DNSNames
	for _, ip := range cert.IPAddresses {
		names = append(names[:len(names):len(names)], ip.String())
	}
	return strings.Join(names, ", ")
}

// certifyAny returns an error if a certificate does not belong to any server of the
// cluster.
func (t *Transport) certifyAny(cert *x509.Certificate) error {
	for id, address := range t.addresses() {
		if t.certify(cert, id, address) == nil {
			return nil
		}
	}
	return fmt.Errorf("a call: the certificate of %+.100q is valid for %+.200q: only servers of the cluster may call here",
		cert.Subject.CommonName, hosts(cert))
}

// certificate returns the certificate that the other side of a connection has shown; nil if
// this cluster uses no TLS between its servers.
func certificate(conn net.Conn) *x509.Certificate {
	if secure, ok := conn.(*tls.Conn); ok {
		return secure.ConnectionState().PeerCertificates[0]
	}
	return nil
}

// clientTLS returns the configuration for a connection to a server at an address. It replaces
// the host check of package tls, which does not support URIs.
func (t *Transport) clientTLS(server uint64, address string) (*tls.Config, error) {
	cfg := t.cfg.ClientTLS().Clone()
	host, err := certifiedHost(server, address)
	if err != nil {
		return nil, err
	}
	cfg.ServerName = host
	cfg.InsecureSkipVerify = true
	cfg.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return errors.New("the server has shown no certificate")
		}
		others := x509.NewCertPool()
		for _, cert := range state.PeerCertificates[1:] {
			others.AddCert(cert)
		}
		if _, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: cfg.RootCAs, Intermediates: others}); err != nil {
			return err
		}
		return t.certify(state.PeerCertificates[0], server, address)
	}
	return cfg, nil
}

package conclave

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// TLSFiles returns a configuration for Config.TLS. The file ca has the certificates that
// vouch for servers; if it is empty, those of the system do. cert and key, if given, are
// those of this program. They are read again for each connection, so that the next one uses
// what has taken their place; a pair that cannot be read or does not fit is passed over.
func TLSFiles(cert, key, ca string) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, err
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: expected certificates in the format PEM", ca)
		}
	}
	switch {
	case cert == "" && key == "":
		return cfg, nil
	case cert == "" || key == "":
		return nil, errors.New("certificate and key: one is missing; expected both or none")
	}
	var last atomic.Pointer[tls.Certificate]
	read := func() error {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", cert, key, err)
		}
		last.Store(&pair)
		return nil
	}
	if err := read(); err != nil {
		return nil, err
	}
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		_ = read() // the pair from before stays
		return last.Load(), nil
	}
	return cfg, nil
}

package conclave

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/conclave-io/conclave/internal/client/pool"
)

// TLSFiles returns a configuration for Config.TLS. The file ca has the certificates that
// vouch for servers; if it is empty, those of the system do. cert and key, if given, are
// those of this program. A Client reads all files again for each connection, so that the
// next connection uses what has replaced them. If they cannot be read or do not match, it
// continues with those that it read before.
func TLSFiles(cert, key, ca string) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		roots, err := pool.ReadRoots(ca)
		if err != nil {
			return nil, err
		}
		cfg.RootCAs = roots
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

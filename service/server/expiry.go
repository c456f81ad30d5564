package server

import (
	"crypto/tls"
	"time"
)

// expiry is when a certificate of this server expires. Its use is towards clients or towards
// peers, which are the other servers.
type expiry struct {
	use  string
	when time.Time
}

// expiries returns those of the certificates in use.
func (s *secrets) expiries() (list []expiry) {
	now := s.now.Load()
	for _, one := range []struct {
		use string
		cfg *tls.Config
	}{{"clients", now.clients}, {"peers", now.peerServer}} {
		if one.cfg != nil {
			list = append(list, expiry{one.use, one.cfg.Certificates[0].Leaf.NotAfter})
		}
	}
	return list
}

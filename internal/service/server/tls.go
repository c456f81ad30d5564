package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/kit/wait"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/transport"
)

// secrets are the TLS configurations of a server. Each new handshake uses the files as they
// were last read.
type secrets struct {
	// clients is for connections of clients and joining for the request to join a cluster.
	// peerServer and peerClient are for the traffic between servers. With nil there is no TLS.
	// joining and peerClient are called for each connection.
	clients, peerServer *tls.Config
	joining, peerClient func() *tls.Config

	// programs and peers are the connections of clients and of other servers, if they have TLS.
	programs, peers *transport.Roster

	cfg Config // names the files
	now atomic.Pointer[keys]

	mu   sync.Mutex // held while the files are read again
	seen []stamp    // of the files when they were last read
}

// keys are configurations made from the files at one time.
type keys struct{ clients, joining, peerServer, peerClient *tls.Config }

func (c Config) loadSecrets() (*secrets, error) {
	s := &secrets{cfg: c, seen: c.stamps()}
	s.now.Store(new(keys))
	if err := s.load(func(*tls.Config) error { return nil }); err != nil {
		return nil, err
	}
	if c.TLSCert != "" {
		s.clients = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			return s.now.Load().clients.GetConfigForClient(hello)
		}}
		s.joining = func() *tls.Config { return s.now.Load().joining }
		s.programs = new(transport.Roster)
	}
	if c.PeerCert != "" {
		s.peerServer = &tls.Config{
			MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAndVerifyClientCert,
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.now.Load().peerServer, nil },
		}
		s.peerClient = func() *tls.Config { return s.now.Load().peerClient }
		s.peers = new(transport.Roster)
	}
	return s, nil
}

// load reads the files. The files towards clients, and those between servers, are used only
// if they fit together and satisfy check; otherwise none of them is.
func (s *secrets) load(check func(*tls.Config) error) error {
	next := *s.now.Load()
	var errs []error
	if s.cfg.TLSCert != "" {
		clients, joining, err := s.cfg.clientSecrets()
		if err == nil {
			err = check(joining)
		}
		if err == nil {
			next.clients, next.joining = clients, joining
		}
		errs = append(errs, about("tls-cert", s.cfg.TLSCert, err))
	}
	if s.cfg.PeerCert != "" {
		server, client, err := s.cfg.peerSecrets()
		if err == nil {
			err = check(client)
		}
		if err == nil {
			next.peerServer, next.peerClient = server, client
		}
		errs = append(errs, about("peer-cert", s.cfg.PeerCert, err))
	}
	s.now.Store(&next)
	return errors.Join(errs...)
}

// reload reads the files again. If they are not valid, the previous ones stay in use.
func (s *secrets) reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = s.cfg.stamps() // first: if a file changes meanwhile, the next check finds it
	return s.load(func(cfg *tls.Config) error { return current(cfg.Certificates[0].Leaf, time.Now()) })
}

// judge closes the connections whose certificates only a removed authority has signed, and
// returns how many there were.
func (s *secrets) judge() (closed int) {
	now := s.now.Load()
	if now.clients != nil && now.clients.ClientCAs != nil {
		closed += s.programs.Judge(now.clients.ClientCAs)
	}
	if now.peerServer != nil {
		closed += s.peers.Judge(now.peerServer.ClientCAs)
	}
	return closed
}

// outdated means that a certificate is not valid now.
type outdated struct{ text string }

func (e *outdated) Error() string { return e.text }

func current(leaf *x509.Certificate, now time.Time) error {
	switch {
	case now.After(leaf.NotAfter):
		return &outdated{"expired on " + leaf.NotAfter.UTC().Format(time.RFC3339)}
	case now.Before(leaf.NotBefore):
		return &outdated{"not valid before " + leaf.NotBefore.UTC().Format(time.RFC3339)}
	}
	return nil
}

// about adds the file name to the error of an outdated certificate. Other errors already
// have it.
func about(key, path string, err error) error {
	if _, old := errors.AsType[*outdated](err); old {
		return fmt.Errorf("%s: %s: %w; use a certificate that is valid now", key, path, err)
	}
	return err
}

// changed reports whether any of the files has changed since it was read.
func (s *secrets) changed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.Equal(s.seen, s.cfg.stamps())
}

// stamp identifies the file that a path leads to. Mounted secrets are replaced by changing a
// symbolic link in their path.
type stamp struct {
	size int64
	time time.Time
}

func (c Config) stamps() []stamp {
	var all []stamp
	for _, path := range []string{c.TLSCert, c.TLSKey, c.TLSCA, c.PeerCert, c.PeerKey, c.PeerCA} {
		info, err := os.Stat(path)
		if err != nil {
			all = append(all, stamp{}) // the file does not exist now
			continue
		}
		all = append(all, stamp{info.Size(), info.ModTime()})
	}
	return all
}

// Reload reads the TLS files again; the server also does so by itself when they change. New
// connections use the new files; present connections stay, unless only a removed authority
// has signed their certificate. A pair that does not fit together or has expired is refused, and the previous one stays in use.
func (s *Server) Reload() error {
	if s.secrets.clients == nil && s.secrets.peerServer == nil {
		return nil
	}
	err := s.secrets.reload()
	closed := s.secrets.judge()
	if closed > 0 {
		s.log.Warn("closed connections whose certificates no trusted authority has signed", "connections", closed)
	}
	s.metrics.Reloaded(err)
	if err != nil {
		s.audit.Note(registry.Record{Kind: "certificates", Result: registry.Invalid, Reason: err.Error()})
		s.log.Error("cannot reload the certificates; the previous ones stay in use", "err", strings.ReplaceAll(err.Error(), "\n", "; "))
		return err
	}
	s.audit.Note(registry.Record{Kind: "certificates", Reason: fmt.Sprintf("connections closed: %d", closed)})
	s.log.Info("reloaded the certificates")
	return nil
}

// watchSecrets reads the TLS files again when they change, and warns when certificates
// expire soon.
func (s *Server) watchSecrets() {
	said := make(warnings)
	s.warnOfExpiry(said, time.Now())
	for range wait.Ticks(s.ctx, s.cfg.LookEvery) {
		if s.secrets.changed() {
			_ = s.Reload() // it logs its error
		}
		s.warnOfExpiry(said, time.Now())
	}
}

func (c Config) clientSecrets() (clients, joining *tls.Config, err error) {
	own, err := loadPair("tls", c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, nil, err
	}
	clients = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}}
	joining = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}}
	if c.TLSCA != "" {
		if clients.ClientCAs, err = loadAuthorities("tls-ca", c.TLSCA); err != nil {
			return nil, nil, err
		}
		clients.ClientAuth = tls.RequireAndVerifyClientCert
		if c.ClientCert == certOptional {
			clients.ClientAuth = tls.VerifyClientCertIfGiven
		}
		joining.RootCAs = clients.ClientCAs
	} else {
		// The authority that signed this server's certificate usually signed the others' too.
		joining.RootCAs = trusted(own)
	}
	preferHTTP1(clients)
	return clients, joining, nil
}

// trusted returns the authorities of the system and those in the chain of a certificate.
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

// preferHTTP1 gives http/1.1 to clients that offer it, and h2 to the others, which are gRPC
// clients. A browser offers both and must not end up with gRPC.
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
		return nil, fmt.Errorf("%s: %s: no certificate in PEM", key, path)
	}
	return pool, nil
}

// expiry is when a certificate of this server expires. Its use is "clients" or "peers".
type expiry struct {
	use  string
	when time.Time
}

// expiries returns the expiry of each certificate in use.
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

// expiryByUse yields the use of each certificate, and when it expires.
func (s *secrets) expiryByUse() iter.Seq2[string, time.Time] {
	return func(yield func(string, time.Time) bool) {
		for _, e := range s.expiries() {
			if !yield(e.use, e.when) {
				return
			}
		}
	}
}

// soonest returns when the first certificate expires, in ns since 1970; 0 if there is none.
func (s *secrets) soonest() int64 {
	first := int64(0)
	for _, e := range s.expiries() {
		if at := e.when.UnixNano(); first == 0 || at < first {
			first = at
		}
	}
	return first
}

// askExpiries asks the other servers when their certificates expire.
func (s *Server) askExpiries(ctx context.Context, answer *api.StatusResponse) {
	var asked []*report
	for _, m := range answer.GetMembers() {
		if m.GetId() != s.cfg.ID {
			asked = append(asked, s.ask(m.GetId()))
		}
	}
	s.awaitSome(ctx, asked)
	for _, m := range answer.GetMembers() {
		m.CertificateExpiresUnixNs = s.reports.expiry(m.GetId())
		if m.GetId() == s.cfg.ID {
			m.CertificateExpiresUnixNs = answer.GetCertificateExpiresUnixNs()
		}
	}
}

// expiry returns when the first certificate of a server expires, by its last answer.
func (r *reports) expiry(id uint64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.of[id]; known != nil {
		return known.status.GetCertificateExpiresUnixNs()
	}
	return 0
}

// warnAhead is how long before the expiry of a certificate the log has a warning. From the
// last day on there is one every hour.
var warnAhead = []time.Duration{30 * day, 14 * day, 7 * day, 3 * day, day, 0}

const day = 24 * time.Hour

// warnings are the last warnings about certificates, by use.
type warnings map[string]warning

type warning struct {
	of    time.Time // the expiry that the warning was about
	stage int       // how many of warnAhead had begun
	at    time.Time
}

// due returns the warning about a certificate that is due, or "".
func (w warnings) due(e expiry, now time.Time) string {
	left, stage := e.when.Sub(now), 0
	for _, ahead := range warnAhead {
		if left <= ahead {
			stage++
		}
	}
	last := w[e.use]
	hour := left <= day && now.Sub(last.at) >= time.Hour
	if said := last.of.Equal(e.when) && stage <= last.stage && !hour; stage == 0 || said {
		return ""
	}
	w[e.use] = warning{e.when, stage, now}
	text := fmt.Sprintf("the certificate for %s expires in %v", e.use, left.Round(time.Minute))
	switch {
	case left <= 0:
		text = fmt.Sprintf("the certificate for %s has expired", e.use)
	case left > 2*day:
		text = fmt.Sprintf("the certificate for %s expires in %d days", e.use, int(left/day))
	}
	return text
}

// warnOfExpiry logs which certificates expire soon.
func (s *Server) warnOfExpiry(w warnings, now time.Time) {
	for _, e := range s.secrets.expiries() {
		if text := w.due(e, now); text != "" {
			s.log.Warn(text+"; replace the files: the server reloads them by itself", "expires", e.when.UTC().Format(time.RFC3339))
		}
	}
}

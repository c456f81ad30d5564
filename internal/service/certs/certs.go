// Package certs has the certificates of a server. It reads their files, reads them again when they
// change, and warns before they expire.
package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/conclave-io/conclave/internal/kit/wait"
	"github.com/conclave-io/conclave/internal/service/transport"
)

// Files names the files of a server, in PEM.
type Files struct {
	// Cert and Key are for connections of clients, and CA has the authorities that must vouch for
	// them. If Optional is set, clients may also connect without a certificate.
	Cert, Key, CA string
	Optional      bool
	// PeerCert, PeerKey and PeerCA are for connections between servers.
	PeerCert, PeerKey, PeerCA string
}

// Store has the TLS configurations of a server. Each new handshake uses the files as they were last
// read.
type Store struct {
	// Clients is for connections of clients and Joining for the request to join a cluster.
	// PeerServer and PeerClient are for the traffic between servers. With nil there is no TLS.
	// Joining and PeerClient are called for each connection.
	Clients, PeerServer *tls.Config
	Joining, PeerClient func() *tls.Config

	// ClientConns and PeerConns are the connections of clients and of other servers, if they
	// have TLS.
	ClientConns, PeerConns *transport.Roster

	files Files
	now   atomic.Pointer[configs]

	mu   sync.Mutex // held while the files are read again
	seen []stamp    // of the files when they were last read
}

// configs are configurations made from the files at one time.
type configs struct{ clients, joining, peerServer, peerClient *tls.Config }

// Load reads the files.
func Load(files Files) (*Store, error) {
	s := &Store{files: files, seen: files.stamps()}
	s.now.Store(new(configs))
	if err := s.load(func(*tls.Config) error { return nil }); err != nil {
		return nil, err
	}
	if files.Cert != "" {
		s.Clients = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			return s.now.Load().clients.GetConfigForClient(hello)
		}}
		s.Joining = func() *tls.Config { return s.now.Load().joining }
		s.ClientConns = new(transport.Roster)
	}
	if files.PeerCert != "" {
		s.PeerServer = &tls.Config{
			MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAndVerifyClientCert,
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.now.Load().peerServer, nil },
		}
		s.PeerClient = func() *tls.Config { return s.now.Load().peerClient }
		s.PeerConns = new(transport.Roster)
	}
	return s, nil
}

// load reads the files. The files towards clients, and those between servers, are used only
// if they fit together and satisfy check; otherwise none of them is.
func (s *Store) load(check func(*tls.Config) error) error {
	next := *s.now.Load()
	var errs []error
	if s.files.Cert != "" {
		clients, joining, err := s.files.clientConfigs()
		if err == nil {
			err = check(joining)
		}
		if err == nil {
			next.clients, next.joining = clients, joining
		}
		errs = append(errs, about("tls-cert", s.files.Cert, err))
	}
	if s.files.PeerCert != "" {
		server, client, err := s.files.peerConfigs()
		if err == nil {
			err = check(client)
		}
		if err == nil {
			next.peerServer, next.peerClient = server, client
		}
		errs = append(errs, about("peer-cert", s.files.PeerCert, err))
	}
	s.now.Store(&next)
	return errors.Join(errs...)
}

// reload reads the files again. If they are not valid, the previous ones stay in use.
func (s *Store) reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = s.files.stamps() // first: if a file changes meanwhile, the next check finds it
	return s.load(func(cfg *tls.Config) error { return current(cfg.Certificates[0].Leaf, time.Now()) })
}

// judge closes the connections whose certificates only a removed authority has signed, and
// returns how many there were.
func (s *Store) judge() (closed int) {
	now := s.now.Load()
	if now.clients != nil && now.clients.ClientCAs != nil {
		closed += s.ClientConns.Judge(now.clients.ClientCAs)
	}
	if now.peerServer != nil {
		closed += s.PeerConns.Judge(now.peerServer.ClientCAs)
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
func (s *Store) changed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.Equal(s.seen, s.files.stamps())
}

// stamp identifies the file that a path leads to. Mounted secrets are replaced by changing a
// symbolic link in their path.
type stamp struct {
	size int64
	time time.Time
}

func (f Files) stamps() []stamp {
	var all []stamp
	for _, path := range []string{f.Cert, f.Key, f.CA, f.PeerCert, f.PeerKey, f.PeerCA} {
		info, err := os.Stat(path)
		if err != nil {
			all = append(all, stamp{}) // the file does not exist now
			continue
		}
		all = append(all, stamp{info.Size(), info.ModTime()})
	}
	return all
}

// Reload reads the files again. New connections use the new files; present connections stay, unless
// only a removed authority has signed their certificate. It returns how many were closed. A pair that
// does not fit together or has expired is refused, and the previous one stays in use.
func (s *Store) Reload(log *slog.Logger) (closed int, err error) {
	err = s.reload()
	closed = s.judge()
	if closed > 0 {
		log.Warn("closed connections whose certificates no trusted authority has signed", "connections", closed)
	}
	if err != nil {
		log.Error("cannot reload the certificates; the previous ones stay in use", "err", strings.ReplaceAll(err.Error(), "\n", "; "))
		return closed, err
	}
	log.Info("reloaded the certificates")
	return closed, nil
}

// Watch calls reload when the files change, and warns when certificates expire soon, until ctx ends.
func (s *Store) Watch(ctx context.Context, every time.Duration, log *slog.Logger, reload func() error) {
	told := make(Warnings)
	s.warn(told, log, time.Now())
	for range wait.Ticks(ctx, every) {
		if s.changed() {
			_ = reload() // it logs its error
		}
		s.warn(told, log, time.Now())
	}
}

func (f Files) clientConfigs() (clients, joining *tls.Config, err error) {
	own, err := loadPair("tls", f.Cert, f.Key)
	if err != nil {
		return nil, nil, err
	}
	clients = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}}
	joining = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}}
	if f.CA != "" {
		if clients.ClientCAs, err = loadAuthorities("tls-ca", f.CA); err != nil {
			return nil, nil, err
		}
		clients.ClientAuth = tls.RequireAndVerifyClientCert
		if f.Optional {
			clients.ClientAuth = tls.VerifyClientCertIfGiven
		}
		joining.RootCAs = clients.ClientCAs
	} else {
		// The authority that signed this server's certificate usually signed the others' too.
		joining.RootCAs = trusted(own)
	}
	PreferHTTP1(clients)
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

// PreferHTTP1 gives http/1.1 to clients that offer it, and h2 to the others, which are gRPC
// clients. A browser offers both and must not end up with gRPC.
func PreferHTTP1(cfg *tls.Config) {
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

func (f Files) peerConfigs() (server, client *tls.Config, err error) {
	own, err := loadPair("peer", f.PeerCert, f.PeerKey)
	if err != nil {
		return nil, nil, err
	}
	authorities, err := loadAuthorities("peer-ca", f.PeerCA)
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

// Expiries yields the use of each certificate, "clients" or "peers", and when it expires.
func (s *Store) Expiries() iter.Seq2[string, time.Time] {
	now := s.now.Load()
	return func(yield func(string, time.Time) bool) {
		for _, one := range []struct {
			use string
			cfg *tls.Config
		}{{"clients", now.clients}, {"peers", now.peerServer}} {
			if one.cfg != nil && !yield(one.use, one.cfg.Certificates[0].Leaf.NotAfter) {
				return
			}
		}
	}
}

// FirstExpiry returns when the first certificate expires, in ns since 1970; 0 if there is none.
func (s *Store) FirstExpiry() int64 {
	first := int64(0)
	for _, when := range s.Expiries() {
		if at := when.UnixNano(); first == 0 || at < first {
			first = at
		}
	}
	return first
}

// warnAhead is how long before something expires the log has a warning. From the
// last day on there is one every hour.
var warnAhead = []time.Duration{30 * day, 14 * day, 7 * day, 3 * day, day, 0}

const day = 24 * time.Hour

// Warnings are the last warnings about what expires, by what it is.
type Warnings map[string]warning

type warning struct {
	of    time.Time // the expiry that the warning was about
	stage int       // how many of warnAhead had begun
	at    time.Time
}

// Due returns the warning that is due about something that expires, such as "the certificate for peers",
// or "".
func (w Warnings) Due(what string, expires, now time.Time) string {
	left, stage := expires.Sub(now), 0
	for _, ahead := range warnAhead {
		if left <= ahead {
			stage++
		}
	}
	last := w[what]
	hour := left <= day && now.Sub(last.at) >= time.Hour
	if said := last.of.Equal(expires) && stage <= last.stage && !hour; stage == 0 || said {
		return ""
	}
	w[what] = warning{expires, stage, now}
	switch {
	case left <= 0:
		return what + " has expired"
	case left > 2*day:
		return fmt.Sprintf("%s expires in %d days", what, int(left/day))
	}
	return fmt.Sprintf("%s expires in %v", what, left.Round(time.Minute))
}

// warn logs which certificates expire soon.
func (s *Store) warn(w Warnings, log *slog.Logger, now time.Time) {
	for use, expires := range s.Expiries() {
		if text := w.Due("the certificate for "+use, expires, now); text != "" {
			log.Warn(text+"; replace the files: the server reloads them by itself", "expires", expires.UTC().Format(time.RFC3339))
		}
	}
}

package transport

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"sync"
	"time"
)

// Roster knows the open connections on which the other side has shown a certificate. When
// an authority is not trusted any more, it closes those that it vouched for.
type Roster struct {
	mu    sync.Mutex
	conns map[*Watched]bool
	// roots are those by which the connections were judged last, nil before. Turn counts how
	// often that was.
	roots *x509.CertPool
	turn  int
}

// Watched is a connection below TLS that a Roster knows.
type Watched struct {
	net.Conn
	roster *Roster
	turn   int
	// shown are the certificates of the other side, and at is when it had shown them. Until
	// the handshake is over there are none.
	shown []*x509.Certificate
	at    time.Time
}

// Watch returns a connection that the roster knows until it is closed. A nil Roster returns
// the connection itself.
func (r *Roster) Watch(raw net.Conn) net.Conn {
	if r == nil {
		return raw
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &Watched{Conn: raw, roster: r, turn: r.turn}
	if r.conns == nil {
		r.conns = make(map[*Watched]bool)
	}
	r.conns[w] = true
	return w
}

// Inner returns the connection itself.
func (w *Watched) Inner() net.Conn { return w.Conn }

// Close closes the connection.
func (w *Watched) Close() error {
	w.roster.mu.Lock()
	delete(w.roster.conns, w)
	w.roster.mu.Unlock()
	return w.Conn.Close()
}

// Shown tells the roster of a connection that its handshake is over. If the roster was told
// of other roots meanwhile, the handshake may have gone by those before.
func Shown(conn *tls.Conn) {
	w, is := conn.NetConn().(*Watched)
	if !is {
		return
	}
	w.roster.mu.Lock()
	w.shown, w.at = conn.ConnectionState().PeerCertificates, time.Now()
	bad := w.turn != w.roster.turn && !w.vouched(w.roster.roots)
	w.roster.mu.Unlock()
	if bad {
		w.Close()
	}
}

// Judge closes the connections whose certificate no chain leads to the roots from, and
// returns how many those are. That a certificate has expired closes none.
func (r *Roster) Judge(roots *x509.CertPool) (closed int) {
	r.mu.Lock()
	r.roots = roots
	r.turn++
	var bad []*Watched
	for w := range r.conns {
		if !w.vouched(roots) {
			bad = append(bad, w)
		}
	}
	r.mu.Unlock()
	for _, w := range bad {
		w.Close()
	}
	return len(bad)
}

// vouched reports whether the other side has shown no certificate, or one that leads to the
// roots, now or at the time of the handshake.
func (w *Watched) vouched(roots *x509.CertPool) bool {
	if len(w.shown) == 0 {
		return true
	}
	between := x509.NewCertPool()
	for _, cert := range w.shown[1:] {
		between.AddCert(cert)
	}
	for _, at := range []time.Time{w.at, time.Now()} {
		if _, err := w.shown[0].Verify(x509.VerifyOptions{
			Roots: roots, Intermediates: between, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		}); err == nil {
			return true
		}
	}
	return false
}

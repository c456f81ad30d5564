package transport

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"
)

// shown returns two ends of a connection that two rosters know, after the handshake, in which
// both sides have shown a certificate of an authority. Meanwhile runs before the dialling end
// is told that it is over.
func shown(t *testing.T, ca *authority, accepted, dialled *Roster, meanwhile func()) (server, client *tls.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	certificates := []tls.Certificate{ca.issue(t)}
	done := make(chan *tls.Conn)
	go func() {
		raw, err := listener.Accept()
		if err != nil {
			t.Error(err)
			close(done)
			return
		}
		conn := tls.Server(accepted.Watch(raw), &tls.Config{Certificates: certificates, ClientCAs: ca.pool, ClientAuth: tls.RequireAndVerifyClientCert})
		if err := conn.Handshake(); err != nil {
			t.Error(err)
		}
		Shown(conn)
		done <- conn
	}()
	raw, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client = tls.Client(dialled.Watch(raw), &tls.Config{Certificates: certificates, RootCAs: ca.pool, ServerName: "127.0.0.1"})
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	server = <-done
	meanwhile()
	Shown(client)
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return server, client
}

func open(conn *tls.Conn) bool { return conn.NetConn().SetDeadline(time.Time{}) == nil }

// TestRoster: connections end whose authority goes, on both sides, and no others.
func TestRoster(t *testing.T) {
	stays, goes := newAuthority(t), newAuthority(t)
	both := x509.NewCertPool()
	both.AddCert(stays.certificate)
	both.AddCert(goes.certificate)
	accepted, dialled, nothing := new(Roster), new(Roster), func() {}
	kept, _ := shown(t, stays, accepted, dialled, nothing)
	_, cut := shown(t, goes, accepted, dialled, nothing)
	if n := accepted.Judge(both) + dialled.Judge(both); n != 0 {
		t.Errorf("%d connections are closed though both authorities are trusted", n)
	}
	if n := dialled.Judge(stays.pool); n != 1 || open(cut) {
		t.Errorf("on the side that dialled %d are closed", n)
	}
	if n := accepted.Judge(stays.pool); n != 1 || !open(kept) {
		t.Errorf("on the side that accepted %d are closed", n)
	}
	_, late := shown(t, goes, accepted, dialled, func() { dialled.Judge(stays.pool) })
	if open(late) {
		t.Error("a handshake by the roots from before outlives them")
	}
	_, in := shown(t, stays, accepted, dialled, func() { dialled.Judge(stays.pool) })
	if !open(in) {
		t.Error("a handshake is undone whose authority is trusted")
	}
	kept.Close()
	if accepted.conns[kept.NetConn().(*Watched)] {
		t.Error("a connection that is closed is remembered")
	}
}

// TestVouchedLongAgo: a certificate that has expired since the handshake is judged as of then.
func TestVouchedLongAgo(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	key := newKey(t)
	old := sign(t, &x509.Certificate{
		SerialNumber: ca.certificate.SerialNumber, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(-time.Minute),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca.certificate, key, ca.key)
	w := &Watched{shown: []*x509.Certificate{old}, at: time.Now().Add(-time.Minute - time.Second)}
	if !w.vouched(ca.pool) || w.vouched(other.pool) {
		t.Error("it does not depend on the authority alone")
	}
}

package transport

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/peering"
)

// secureAs lets a server use a certificate of its own.
func (a *authority) secureAs(c *Config, cert tls.Certificate) {
	c.ServerTLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: a.pool, ClientAuth: tls.RequireAndVerifyClientCert}
	c.ClientTLS = func() *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: a.pool}
	}
}

func own(server uint64) string {
	return fmt.Sprintf("conclave://%016x/%d", uint64(testCluster), server)
}

// Attack 19: a certificate of the right authority proves that its owner is trusted, but
// not which server it is. Without the second check, a client's certificate would be
// accepted.
func TestWhoseCertificateIsThat(t *testing.T) {
	ca := newAuthority(t)
	s := alone(t, func(c *Config) { ca.secure(t, c) })
	for name, test := range map[string]struct {
		cert tls.Certificate
		want string // what the refusal says; empty if it is let in
	}{
		"valid for the host":          {ca.issueFor(t, "127.0.0.1"), ""},
		"valid for another host":      {ca.issueFor(t, "127.0.0.9"), `its certificate is valid for "127.0.0.9", not for 127.0.0.1: use a certificate for that host, or with the URI ` + own(2)},
		"of a server by URI":          {ca.issueFor(t, "127.0.0.9", own(2)), ""},
		"of another server":           {ca.issueFor(t, "127.0.0.1", own(3)), "expected " + own(2)},
		"of another cluster":          {ca.issueFor(t, "127.0.0.1", "conclave://00000000000000ff/2"), "expected " + own(2)},
		"of two servers":              {ca.issueFor(t, "127.0.0.1", own(2), own(3)), "more than one URI"},
		"of a server, and a workload": {ca.issueFor(t, "127.0.0.9", "spiffe://prod/a", own(2)), ""},
		"of a workload":               {ca.issueFor(t, "127.0.0.9", "spiffe://prod/a"), `valid for "127.0.0.9", not for`},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(get(s.recorder, &s.met))
			k, payload, err := greetOverTLS(t, s, visitHello(), &tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{test.cert}})
			if err != nil {
				t.Fatal(err)
			}
			if test.want == "" {
				if k != kindHello {
					t.Errorf("a frame of kind %d: %q", k, payload)
				}
				eventually(t, "the handler has met it", func() bool { return len(get(s.recorder, &s.met)) > before })
				return
			}
			if k != kindRefusal {
				t.Fatalf("a frame of kind %d, not a refusal", k)
			}
			refusal, err := peering.DecodeRefusal(payload)
			if err != nil || refusal.Code != peering.WrongCertificate || !strings.Contains(refusal.Text, test.want) ||
				!strings.HasPrefix(refusal.Text, "server 2 at "+s.peer(2).where()+": its certificate ") {
				t.Errorf("it is refused with %v, %v; want %q", refusal, err, test.want)
			}
			if met := get(s.recorder, &s.met)[before:]; len(met) > 0 {
				t.Errorf("the handler has met %v", met)
			}
		})
	}
}

// greetOverTLS introduces itself, and returns the answer.
func greetOverTLS(t *testing.T, s *server, h Hello, cfg *tls.Config) (kind, []byte, error) {
	t.Helper()
	cfg.ServerName = "127.0.0.1"
	raw, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	if err := raw.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	l := newConnection(raw, tls.Client(raw, cfg))
	if err := l.write(kindHello, h.Append(nil), nil, true); err != nil {
		return 0, nil, err
	}
	return l.read()
}

// A server may accept an unknown server, but not with every certificate.
func TestTakesAStranger(t *testing.T) {
	record := founding.Record{{ID: 1, UID: 10}}
	ca := newAuthority(t)
	s := alone(t, func(c *Config) {
		ca.secure(t, c)
		c.Takes = func(h Hello) bool { return h.Record.Equal(record) }
	})
	greet := func(r founding.Record, cert tls.Certificate) kind {
		h := visitHello()
		h.Server, h.Phase, h.Record = 7, founding.Founded, r
		k, _, err := greetOverTLS(t, s, h, &tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{cert}})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	good := ca.issueFor(t, "127.0.0.1")
	for name, k := range map[string]kind{
		"another record":    greet(founding.Record{{ID: 1, UID: 11}}, good),
		"wrong certificate": greet(record, ca.issueFor(t, "127.0.0.9")),
	} {
		if k != kindRefusal {
			t.Errorf("%s: a frame of kind %d, not a refusal", name, k)
		}
	}
	if s.peer(7) != nil {
		t.Fatal("a server that was refused is a peer")
	}
	if k := greet(record, good); k != kindHello {
		t.Errorf("the same record: a frame of kind %d, not an introduction", k)
	}
	if p := s.peer(7); p == nil || p.where() != visitHello().PeerAddress {
		t.Error("it is no peer at the address that it named")
	}
}

// Servers that moved among hosts, or hide behind one name, have URIs.
func TestServersKnowEachOtherByURI(t *testing.T) {
	ca := newAuthority(t)
	pair(t, func(c *Config) { ca.secureAs(c, ca.issueFor(t, "127.0.0.9", own(c.Self.Server))) })
}

// The dialler believes a URI no more than the acceptor does.
func TestAServerUnderTheWrongAddress(t *testing.T) {
	ca := newAuthority(t)
	for _, cert := range []tls.Certificate{ca.issueFor(t, "127.0.0.9"), ca.issueFor(t, "127.0.0.1", own(3))} {
		b := alone(t, func(c *Config) { ca.secureAs(c, cert) })
		cfg := config(2, listen(t, "127.0.0.1:0"), map[uint64]string{1: b.address})
		ca.secure(t, &cfg)
		a := launch(t, cfg)
		eventually(t, "the dialler says why", func() bool {
			return a.journal.count("cannot reach a peer", "its certificate ") == 1
		})
		if up := a.Transport.Connected(); len(up) != 0 {
			t.Errorf("%v are connected", up)
		}
	}
}

// calls lets a server take calls, and returns where they come.
func calls(c *Config) <-chan net.Conn {
	taken := make(chan net.Conn)
	c.Calls = taken
	return taken
}

// A peer accepts frames and calls at one address, and both sides of a call know that the
// other is a server.
func TestCalls(t *testing.T) {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	ca := newAuthority(t)
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS=%v", secure), func(t *testing.T) {
			var taken <-chan net.Conn
			a, _ := pair(t, func(c *Config) {
				if secure {
					ca.secure(t, c)
				}
				if in := calls(c); c.Self.Server == 2 {
					taken = in
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			conn, err := a.Dial(ctx, 2)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			go io.WriteString(conn, preface)
			select {
			case in := <-taken:
				defer in.Close()
				got := make([]byte, len(preface))
				if _, err := io.ReadFull(in, got); err != nil || string(got) != preface {
					t.Errorf("%q arrives, %v", got, err)
				}
			case <-ctx.Done():
				t.Fatal("the call does not arrive")
			}
			if _, err := a.Dial(ctx, 7); err == nil || !strings.Contains(err.Error(), "server 7: not a member") {
				t.Errorf("a call of a stranger: %v", err)
			}
		})
	}
}

// Attack 18: a client with a certificate of the authority does not get to call as
// servers do.
func TestCallWithACertificateOfAClient(t *testing.T) {
	ca := newAuthority(t)
	for name, test := range map[string]struct {
		certs []tls.Certificate
		want  string
	}{
		"for another host":     {[]tls.Certificate{ca.issueFor(t, "127.0.0.9")}, "only servers of the cluster may call here"},
		"of another cluster":   {[]tls.Certificate{ca.issueFor(t, "127.0.0.1", "conclave://00000000000000ff/2")}, "only servers of the cluster may call here"},
		"of another authority": {[]tls.Certificate{newAuthority(t).issue(t)}, "TLS: "},
		"none":                 {nil, "TLS: "},
	} {
		t.Run(name, func(t *testing.T) {
			var taken <-chan net.Conn
			s := alone(t, func(c *Config) {
				ca.secure(t, c)
				taken = calls(c)
			})
			raw, err := net.Dial("tcp", s.address)
			if err != nil {
				t.Fatal(err)
			}
			defer raw.Close()
			raw.SetDeadline(time.Now().Add(time.Minute))
			conn := tls.Client(raw, &tls.Config{RootCAs: ca.pool, Certificates: test.certs, ServerName: "127.0.0.1", NextProtos: []string{"h2"}})
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				t.Error("it is answered")
			}
			eventually(t, "it is logged", func() bool {
				return s.journal.count("refused a connection to the peer port", test.want) == 1
			})
			select {
			case <-taken:
				t.Error("it is let in")
			default:
			}
		})
	}
}

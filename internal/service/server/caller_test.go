package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
	"github.com/conclave-io/conclave/internal/service/version"
)

// ownerOf returns the owner of the only session.
func ownerOf(t *testing.T, client api.ConclaveClient) string {
	t.Helper()
	page, err := client.Sessions(t.Context(), &api.SessionsRequest{})
	if err != nil || len(page.GetSessions()) != 1 {
		t.Fatalf("got %v, %v", page, err)
	}
	return page.GetSessions()[0].GetOwner()
}

// The owner of a session is the name in the certificate, for every kind of call: over
// gRPC, over HTTP, and with TLS that agrees on no protocol beforehand.
func TestTheOwnerIsWhomTheCertificateNames(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	c := servertest.Start(t, 1, authority.Secure)
	batch := authority.Client("batch")
	client := dial(t, c.Address(1), batch)

	session := newSession()
	opened := once(t, client, session, open(time.Minute), api.Code_CODE_OK)
	if owner := ownerOf(t, client); owner != "cert:batch" || len(opened.GetId()) != 16 {
		t.Errorf("the owner is %q, the id %x", owner, opened.GetId())
	}
	for _, protocols := range [][]string{{"http/1.1"}, nil} {
		secrecy := batch.Clone()
		secrecy.NextProtos = protocols
		b := browse(t, c.Address(1))
		b.base = "https://" + c.Address(1)
		b.http.Transport = &http.Transport{TLSClientConfig: secrecy, ForceAttemptHTTP2: false, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
		renewed := b.post("/v1/renew", `{"session":"`+hexOf(session)+`"}`)
		if renewed["session_id"] != "s-"+hexOf(opened.GetId()) {
			t.Errorf("with the protocols %v the same secret is session %v, over gRPC %x", protocols, renewed["session_id"], opened.GetId())
		}
	}
	once(t, dial(t, c.Address(1), authority.Client("other")), session, renew(), api.Code_CODE_SESSION_GONE)

	spiffe := authority.Client("common name", func(cert *x509.Certificate) {
		cert.URIs = []*url.URL{{Scheme: "spiffe", Host: "prod", Path: "/report"}}
	})
	once(t, client, session, closing(), api.Code_CODE_OK)
	once(t, dial(t, c.Address(1), spiffe), session, open(time.Minute), api.Code_CODE_OK)
	if owner := ownerOf(t, client); owner != "cert:spiffe://prod/report" {
		t.Errorf("the owner is %q", owner)
	}
}

// A certificate that names nobody does not make its bearer an anonymous caller.
func TestACertificateThatNamesNobodyIsRefused(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	c := servertest.Start(t, 1, authority.Secure)
	for _, test := range []struct {
		name string
		uris []string
		says string
	}{
		{"", nil, "no name"},
		{"a*", nil, `contains "*"`},
		{"a\nb", nil, "contains control characters"},
		{strings.Repeat("x", 300), nil, "has 305 bytes"},
		{"n", []string{"spiffe://a/b", "spiffe://a/c"}, "exactly one"},
		{"n", []string{"conclave://0123456789abcdef/1"}, "belongs to a server"},
	} {
		secrecy := authority.Client("client", func(cert *x509.Certificate) {
			cert.Subject.CommonName = test.name
			for _, text := range test.uris {
				uri, err := url.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				cert.URIs = append(cert.URIs, uri)
			}
		})
		client := dial(t, c.Address(1), secrecy)
		_, err := client.Status(within(t), &api.StatusRequest{})
		oneLine(t, status.Convert(err).Message(), test.says)
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("a call with the name %.20q: %v", test.name, err)
		}
		stream, err := client.Attach(within(t))
		if err == nil {
			_, err = stream.Recv()
		}
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("a stream with the name %.20q: %v", test.name, err)
		}
		b := browse(t, c.Address(1))
		b.base, b.http.Transport = "https://"+c.Address(1), &http.Transport{TLSClientConfig: secrecy}
		a := b.refused("GET", "/v1/status", "", http.StatusUnauthorized, "UNAUTHENTICATED")
		message, _ := a.json["message"].(string)
		oneLine(t, message, test.says)
		b.http.CloseIdleConnections()
	}
}

// The cluster's rules decide which name of a certificate counts, also on existing
// connections.
func TestNamesOfCertificates(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	c := servertest.Start(t, 1, authority.Secure)
	client := dial(t, c.Address(1), authority.Client("batch", func(cert *x509.Certificate) {
		cert.DNSNames = []string{"batch.example"}
		cert.URIs = []*url.URL{{Scheme: "spiffe", Host: "prod", Path: "/report"}}
	}))
	several := dial(t, c.Address(1), authority.Client("several", func(cert *x509.Certificate) { cert.DNSNames = []string{"a.example", "b.example"} }))
	unnamed := dial(t, c.Address(1), authority.Client("", func(cert *x509.Certificate) { cert.DNSNames = nil }))
	whoAmI := func(client api.ConclaveClient) (string, error) {
		answer, err := client.Access(within(t), &api.AccessRequest{Ask: &api.AccessRequest_WhoAmI{WhoAmI: &api.WhoAmI{}}})
		return answer.GetPrincipal(), err
	}
	operator := program(t, "unix:"+filepath.Join(c.Config(1).Data, "admin.sock"), "")
	servertest.Eventually(t, "the level of rules", func() bool {
		u, err := admin.New(operator).Upgrade(t.Context())
		return err == nil && u.Level == version.Max
	})
	if name, err := whoAmI(client); name != "cert:spiffe://prod/report" {
		t.Errorf("by default the name is %q, %v", name, err)
	}
	for _, test := range []struct {
		names, want string
	}{
		{"cn", "cert:batch"}, {"dns,cn", "cert:batch.example"}, {"dns", "cert:batch.example"}, {"cn,uri", "cert:batch"}, {"uri,cn", "cert:spiffe://prod/report"},
	} {
		changeRules(t, operator, admin.SetNames(strings.Split(test.names, ",")...))
		servertest.Eventually(t, test.names+" count", func() bool {
			name, err := whoAmI(client)
			return err == nil && name == test.want
		})
		_, err := whoAmI(several)
		if strings.HasPrefix(test.names, "dns") {
			oneLine(t, status.Convert(err).Message(), "2 DNS names: must have exactly one")
		} else if err != nil {
			t.Errorf("with %s: two DNS names, which do not count: %v", test.names, err)
		}
		_, err = whoAmI(unnamed)
		oneLine(t, status.Convert(err).Message(), "no name: must have one of "+strings.ReplaceAll(test.names, ",", ", "))
	}
}

func oneLine(t *testing.T, message, says string) {
	t.Helper()
	if !strings.Contains(message, says) || strings.Contains(message, "\n") {
		t.Errorf("got %q, want %q on one line", message, says)
	}
}

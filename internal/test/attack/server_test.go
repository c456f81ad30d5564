package attack

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
)

// vouched adds the metadata that a server sends when it forwards a call for a principal.
func vouched(ctx context.Context, principal string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "conclave-principal-bin", principal,
		"conclave-via-bin", "grpc", "conclave-remote-bin", "192.0.2.1:1", "conclave-hop", "1", "conclave-relay", "1")
}

func vouchForOneself(w *world) {
	owner := w.certificate("owner")
	v, before := w.stolen(owner)
	for _, id := range []int{w.cluster.Leader(), w.cluster.Follower()} {
		client, _ := w.dial(id, w.certificate("thief"))
		ctx := vouched(w.within(), "cert:owner")
		for _, session := range [][]byte{v.secret, v.id} {
			r := releasing(before.GetSequence())
			r.Session, r.Sequence = session, 1000
			if reply, err := client.Do(ctx, r); err != nil || reply.GetCode() != api.Code_CODE_SESSION_GONE {
				w.Errorf("at server %d a call is answered with %v, %v", id, reply, err)
			}
			s := w.attachTo(ctx, client, session)
			s.expect(s.send(releasing(before.GetSequence())), api.Code_CODE_SESSION_GONE)
			if err := s.CloseSend(); err != nil {
				w.Error(err)
			}
		}
	}
	v.undisturbed(owner, before, "calls that vouch for themselves")
	v.expect(v.send(closing()), api.Code_CODE_OK)
}

func callAsAServer(w *world) {
	owner := w.certificate("owner")
	v, before := w.stolen(owner)
	for name, secrecy := range map[string]*tls.Config{
		"of the clients' authority": w.certificate("thief"),
		"for another host": w.servers.Client("thief", func(cert *x509.Certificate) {
			cert.DNSNames, cert.IPAddresses = []string{"laptop"}, nil
		}),
		"for another address": w.servers.Client("thief", func(cert *x509.Certificate) {
			cert.DNSNames, cert.IPAddresses = nil, []net.IP{net.IPv4(127, 0, 0, 9)}
		}),
		"of another cluster": w.servers.Client("thief", func(cert *x509.Certificate) {
			cert.URIs = []*url.URL{{Scheme: "conclave", Host: "0123456789abcdef", Path: "/1"}}
		}),
		"none": w.servers.Trusting(),
	} {
		for id := 1; id <= w.cluster.Servers(); id++ {
			client, _ := w.dialAt(w.cluster.Server(id).PeerAddr().String(), secrecy)
			r := releasing(before.GetSequence())
			r.Session, r.Sequence = v.id, 1000
			if reply, err := client.Do(vouched(w.within(), "cert:owner"), r); status.Code(err) != codes.Unavailable {
				w.Errorf("with the certificate %s server %d answers %v, %v", name, id, reply, err)
			}
		}
	}
	v.undisturbed(owner, before, "calls on the peer port")
	v.expect(v.send(closing()), api.Code_CODE_OK)
}

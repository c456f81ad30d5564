package attack

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
)

// badBearers are values of the header Authorization that authenticate nobody.
var badBearers = []string{
	"", "x", "cvt1_", "cvt1_abcdefghijklmn27", "cvt1_abcdefghijklmn27_", "cvt1_abcdefghijklmn27_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
	"eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
}

func bearerBesideACertificate(w *world) {
	owner := w.certificate("owner")
	v, before := w.stolen(owner)
	for _, id := range []int{w.cluster.Leader(), w.cluster.Follower()} {
		client, _ := w.dial(id, owner)
		for _, bearer := range badBearers {
			for _, scheme := range []string{"Bearer ", "bearer "} {
				ctx := metadata.AppendToOutgoingContext(w.within(), "authorization", scheme+bearer)
				w.refusedAs(codes.Unauthenticated, ctx, client, v.secret, before.GetSequence())
				req := w.request(id, "POST", "/v1/release", fmt.Sprintf(`{"session":"%x","hold":"%d"}`, v.secret, before.GetSequence()))
				req.Header.Set("Authorization", scheme+bearer)
				if code, text := w.send(owner, req); code != 401 {
					w.Errorf("over HTTP with the bearer %q: %d %s", bearer, code, text)
				}
			}
			v.undisturbed(owner, before, "calls with the bearer "+bearer)
		}
	}
	v.expect(v.send(closing()), api.Code_CODE_OK)
}

// refusedAs requires that a call and a stream are refused with the given code.
func (w *world) refusedAs(want codes.Code, ctx context.Context, client api.ConclaveClient, session []byte, hold uint64) {
	w.Helper()
	r := releasing(hold)
	r.Session, r.Sequence = session, 1000
	if reply, err := client.Do(ctx, r); status.Code(err) != want {
		w.Errorf("a call is answered with %v, %v; want %v", reply, err, want)
	}
	stream, err := client.Attach(ctx)
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != want {
		w.Errorf("a stream is answered with %v; want %v", err, want)
	}
}

package guarded

import (
	"testing"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// Only another server can name the home that revokes a lock, and every other request with a home
// is for that home.
func TestRoutesOfRequests(t *testing.T) {
	d := New(Config{Server: 2})
	client := authn.WithCaller(t.Context(), stream.Caller{Principal: "cert:a"})
	leader := authn.WithCaller(t.Context(), stream.Caller{Principal: "cert:a", Vouched: true})
	acquire := &api.Request_Acquire{Acquire: &api.Acquire{Name: "a"}}
	election := &api.Request_Revoke{Revoke: &api.Revoke{Class: api.Class_CLASS_ELECTION, Name: "a"}}
	lock := &api.Request_Revoke{Revoke: &api.Revoke{Class: api.Class_CLASS_LOCK, Name: "a"}}
	for _, test := range []struct {
		what    string
		vouched bool
		req     *api.Request
		want    Route
	}{
		{"a request without a home", false, &api.Request{Op: acquire}, ByLog},
		{"one for this home", false, &api.Request{Op: acquire, Home: 2}, AtHome},
		{"one for another home", true, &api.Request{Op: acquire, Home: 3}, AtHome},
		{"an election to be revoked", false, &api.Request{Op: election}, ByLog},
		{"an election to be revoked by this home", false, &api.Request{Op: election, Home: 2}, ByLog},
		{"a lock to be revoked by this home, as the leader asks", true, &api.Request{Op: lock, Home: 2}, ForLeader},
	} {
		ctx := client
		if test.vouched {
			ctx = leader
		}
		if got := d.RouteOf(ctx, test.req); got != test.want {
			t.Errorf("%s: route %d, want %d", test.what, got, test.want)
		}
	}
}

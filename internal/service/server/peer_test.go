package server_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// passedOn is how a server says who made a call.
func passedOn(ctx context.Context, principal string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "conclave-principal-bin", principal,
		"conclave-via-bin", "grpc", "conclave-remote-bin", "192.0.2.1:1", "conclave-hop", "1", "conclave-relay", "1")
}

// A call that a follower forwards belongs to its caller, not to the follower.
func TestAPassedOnCallKeepsItsCaller(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	c := servertest.Start(t, 3, authority.Secure)
	batch, other := authority.Client("batch"), authority.Client("other")
	follower, leader := c.Address(c.Follower()), c.Address(c.Leader())
	session := newSession()
	opened := once(t, dial(t, follower, batch), session, open(time.Minute), api.Code_CODE_OK)
	if owner := ownerOf(t, dial(t, leader, other)); owner != "cert:batch" {
		t.Errorf("the owner is %q", owner)
	}
	if !bytes.Equal(opened.GetSession(), session) || bytes.Equal(opened.GetId(), session) {
		t.Errorf("the session %x is answered as %x, with the id %x", session, opened.GetSession(), opened.GetId())
	}
	renewed := once(t, dial(t, leader, batch), session, renew(), api.Code_CODE_OK)
	if !bytes.Equal(renewed.GetId(), opened.GetId()) {
		t.Errorf("through the follower it has the id %x, at the leader %x", opened.GetId(), renewed.GetId())
	}
	once(t, dial(t, follower, other), session, renew(), api.Code_CODE_SESSION_GONE)
	once(t, dial(t, follower, other), opened.GetId(), renew(), api.Code_CODE_SESSION_GONE)
}

// A server says who made the call that it passes on.
func TestACallOfNobodyIsRefused(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 1)
	client := dial(t, c.Server(1).PeerAddr().String(), nil)
	for name, ctx := range map[string]context.Context{
		"nobody":             within(t),
		"two":                passedOn(passedOn(within(t), "cert:a"), "cert:b"),
		"control characters": passedOn(within(t), "cert:a\nb"),
		"a pattern":          passedOn(within(t), "cert:*"),
	} {
		if _, err := client.Status(ctx, &api.StatusRequest{}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
		stream, err := client.Attach(ctx)
		if err == nil {
			_, err = stream.Recv()
		}
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("a stream, %s: %v", name, err)
		}
	}
	ctx := passedOn(within(t), "cert:batch")
	id := registry.Derive("cert:batch", newSession())
	r := open(time.Minute)
	r.Session, r.Sequence = id[:], 1
	if reply, err := client.Do(ctx, r); err != nil || reply.GetCode() != api.Code_CODE_OK || !bytes.Equal(reply.GetId(), id[:]) {
		t.Errorf("a call of a server: %v, %v", reply, err)
	}
}

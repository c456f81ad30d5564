package admission

import (
	"context"
	"encoding/base64"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/metrics"
)

// follower applies what the leader has decided when it is told to.
type follower struct {
	knows, decided *access.State
	beforeAnswer   func()
}

func (f *follower) Rules() *access.State    { return f.knows }
func (f *follower) AccessMode() access.Mode { return f.knows.Mode() }

// ask is answered by the leader.
func (f *follower) ask(context.Context) (*api.AccessResponse, error) {
	if f.beforeAnswer != nil {
		f.beforeAnswer()
	}
	return &api.AccessResponse{Revision: f.decided.Revision(), Mode: f.decided.Mode().String()}, nil
}

// decide makes a token that the follower does not know yet.
func (f *follower) decide(t *testing.T, id string) (authorization []string) {
	t.Helper()
	secret := make([]byte, 32)
	next, err := f.decided.Apply(&access.Change{Edits: []access.Edit{{Kind: access.PutToken, Token: access.Token{
		ID: id, Hash: access.Digest(secret), Name: "bob", Expires: time.Now().Add(time.Hour).UnixNano(),
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	f.decided = next
	return []string{"Bearer cvt1_" + id + "_" + base64.RawURLEncoding.EncodeToString(secret)}
}

// TestNewTokenAtAFollowerThatLags: a server never refuses for good a token that exists. While
// it lags behind, it says that the caller should try again.
func TestNewTokenAtAFollowerThatLags(t *testing.T) {
	first := access.New(access.Closed)
	f := &follower{knows: first, decided: first}
	g := New(Config{Node: f, Ask: f.ask, Metrics: metrics.New(metrics.Source{})})
	try := func(authorization []string) codes.Code {
		_, err := g.admit(t.Context(), authn.Identity{}, authorization)
		return status.Code(err)
	}
	never := (&follower{decided: first}).decide(t, "cccccccccccccccc")
	if code := try(never); code != codes.Unauthenticated {
		t.Errorf("a token that nobody made: %v", code)
	}
	token := f.decide(t, "aaaaaaaaaaaaaaaa")
	if code := try(token); code != codes.Unavailable {
		t.Errorf("just after the leader confirmed older rules: %v", code)
	}
	f.beforeAnswer = func() { f.knows = f.decided }
	if code := try(token); code != codes.Unavailable {
		t.Errorf("when the rules arrive while the leader is asked: %v", code)
	}
	if code := try(token); code != codes.OK {
		t.Errorf("when the rules are there: %v", code)
	}
	if code := try(never); code != codes.Unauthenticated {
		t.Errorf("a token that nobody made: %v", code)
	}
}

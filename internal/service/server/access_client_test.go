package server_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
	"github.com/conclave-io/conclave/internal/service/version"
)

// ruled returns a cluster at the level of rules, and a program that comes in through the
// socket of its first server.
func ruled(t *testing.T, servers int) (*servertest.Cluster, *conclave.Client) {
	t.Helper()
	c := servertest.Start(t, servers)
	operator := program(t, "unix:"+filepath.Join(c.Config(1).Data, "admin.sock"), "")
	servertest.Eventually(t, "the cluster comes to the level of rules", func() bool {
		u, err := admin.New(operator).Upgrade(t.Context())
		if err == nil && u.Target > u.Level {
			_, err = admin.New(operator).RaiseLevel(t.Context(), u.Target)
		}
		return err == nil && u.Level == version.Max
	})
	return c, operator
}

// program dials a server with a token, unless that is empty.
func program(t *testing.T, at, token string) *conclave.Client {
	t.Helper()
	client, err := dialWith(t, at, token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func dialWith(t *testing.T, at, token string) (*conclave.Client, error) {
	cfg := conclave.Config{Servers: []string{at}}
	if token != "" {
		cfg.Token = func(context.Context) (string, error) { return token, nil }
	}
	return conclave.Dial(t.Context(), cfg)
}

func changeRules(t *testing.T, operator *conclave.Client, edits ...admin.AccessEdit) admin.AccessChanged {
	t.Helper()
	changed, err := admin.New(operator).ChangeAccess(t.Context(), admin.AccessChange{Edits: edits})
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// A program makes rules, and they decide what the holders of tokens may do.
func TestRulesByTheGoAPI(t *testing.T) {
	t.Parallel()
	c, operator := ruled(t, 1)
	bobs, put, id := admin.NewToken("bob", time.Now().Add(time.Hour), "for the test")
	edits := []admin.AccessEdit{
		admin.PutRole(admin.Role{Name: "batch", Rules: []string{`allow read,hold on prefix "reports/"`}}),
		admin.PutBinding(admin.Binding{Who: "token:bob", Roles: []string{"batch"}}),
		put, admin.SetMode("closed"),
	}
	if _, err := admin.New(operator).ChangeAccess(t.Context(), admin.AccessChange{Edits: edits}); err == nil || !strings.Contains(err.Error(), "nobody would be left") {
		t.Errorf("rules that nobody may change: %v", err)
	}
	changeRules(t, operator, append(edits, admin.PutBinding(admin.Binding{Who: "cert:alice", Roles: []string{"admin"}}))...)

	bob := program(t, c.Address(1), bobs)
	if who, err := admin.New(bob).WhoAmI(t.Context()); err != nil || who.Principal != "token:bob" || !slices.Equal(who.Roles, []string{"batch"}) {
		t.Errorf("bob is %+v, %v", who, err)
	}
	if _, err := bob.Lock(t.Context(), "reports/a"); err != nil {
		t.Error(err)
	}
	if _, err := bob.Lock(t.Context(), "other"); !errors.Is(err, conclave.ErrDenied) {
		t.Errorf("a lock elsewhere: %v", err)
	}
	if _, err := admin.New(bob).Access(t.Context()); !errors.Is(err, conclave.ErrDenied) {
		t.Errorf("bob reads the rules: %v", err)
	}
	for name, want := range map[string]bool{"reports/b": true, "b": false} {
		for who, client := range map[string]*conclave.Client{"": bob, "token:bob": operator} {
			if v, err := admin.New(client).CheckAccess(t.Context(), admin.AccessCheck{Verb: "hold", Name: name, Principal: who}); err != nil || v.Allowed != want || v.Why == "" {
				t.Errorf("whether %q may hold %q: %+v, %v", who, name, v, err)
			}
		}
	}
	begun := time.Now()
	if _, err := dialWith(t, c.Address(1), ""); !errors.Is(err, conclave.ErrUnauthenticated) || time.Since(begun) > 5*time.Second {
		t.Errorf("without a token: %v after %v", err, time.Since(begun))
	}
	rules, err := admin.New(operator).Access(t.Context())
	if err != nil || rules.Mode != "closed" || len(rules.Tokens) != 1 || rules.Tokens[0].ID != id || !strings.HasPrefix(rules.Tokens[0].Creator, "local:1/") || len(rules.Roles) != 1 || len(rules.Bindings) != 2 {
		t.Errorf("the rules are %+v, %v", rules, err)
	}
}

// A change for a revision that is gone is not made. The holds that a change would deny
// are listed before and after it, and the holders keep them.
func TestChangesOfRules(t *testing.T) {
	t.Parallel()
	c, operator := ruled(t, 1)
	bobs, put, id := admin.NewToken("bob", time.Time{}, "")
	changeRules(t, operator, put, admin.PutBinding(admin.Binding{Who: "token:bob", Roles: []string{"admin"}}), admin.SetMode("closed"))
	bob := program(t, c.Address(1), bobs)
	held, err := bob.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	fence, _ := held.Fence()
	rules, err := admin.New(operator).Access(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	less := admin.AccessChange{Edits: []admin.AccessEdit{admin.PutBinding(admin.Binding{Who: "token:bob", Roles: []string{"viewer"}})}, Expected: rules.Revision, Force: true, DryRun: true}
	for _, dry := range []bool{true, false} {
		less.DryRun = dry
		changed, err := admin.New(operator).ChangeAccess(t.Context(), less)
		if err != nil || changed.Denied != 1 || len(changed.Holds) != 1 || changed.Holds[0] != (admin.DeniedHold{Name: "a", Fence: fence, Owner: "token:bob", Session: bob.SessionID()}) {
			t.Errorf("dry %v: %+v, %v", dry, changed, err)
		}
		if now, err := admin.New(operator).Access(t.Context()); err != nil || (now.Revision == rules.Revision) != dry {
			t.Errorf("dry %v: revision %d, %v; it was %d", dry, now.Revision, err, rules.Revision)
		}
	}
	less.Edits = []admin.AccessEdit{admin.DropBinding("token:bob")}
	for _, dry := range []bool{true, false} {
		less.DryRun = dry
		if _, err := admin.New(operator).ChangeAccess(t.Context(), less); !errors.Is(err, admin.ErrConflict) {
			t.Errorf("for a revision that is gone, dry %v: %v", dry, err)
		}
	}
	if held.Context().Err() != nil {
		t.Error("the hold has ended")
	}
	if _, err := admin.New(bob).ChangeAccess(t.Context(), admin.AccessChange{Edits: less.Edits, DryRun: true}); !errors.Is(err, conclave.ErrDenied) {
		t.Errorf("bob tries a change: %v", err)
	}

	// The end of a token changes; without the revision at which it was read it does not.
	if rules, err = admin.New(operator).Access(t.Context()); err != nil {
		t.Fatal(err)
	}
	end := admin.ExpireToken(rules.Tokens[0], time.Now().Add(time.Hour))
	if _, err := admin.New(operator).ChangeAccess(t.Context(), admin.AccessChange{Edits: []admin.AccessEdit{end}}); err == nil || !strings.Contains(err.Error(), "expected: missing") {
		t.Errorf("an end without a revision: %v", err)
	}
	if _, err := admin.New(operator).ChangeAccess(t.Context(), admin.AccessChange{Edits: []admin.AccessEdit{end}, Expected: rules.Revision}); err != nil {
		t.Error(err)
	}
	if rules, err = admin.New(operator).Access(t.Context()); err != nil || rules.Tokens[0].Expires.IsZero() {
		t.Errorf("the token is %+v, %v", rules.Tokens[0], err)
	}
	if _, err := admin.New(bob).WhoAmI(t.Context()); err != nil {
		t.Errorf("the token does not prove bob any more: %v", err)
	}
	changeRules(t, operator, admin.DropToken(id))
	servertest.Eventually(t, "the token is refused", func() bool {
		_, err := admin.New(bob).WhoAmI(t.Context())
		return errors.Is(err, conclave.ErrUnauthenticated)
	})
}

// A token is good on every server once the command that made it has returned. A server that
// lags behind may ask to try again, and does not say that the token is unknown.
func TestANewTokenIsKnownEverywhere(t *testing.T) {
	t.Parallel()
	c, operator := ruled(t, 3)
	follower := c.Address(c.Follower())
	for range 50 {
		token, put, _ := admin.NewToken("bob", time.Now().Add(time.Hour), "")
		changeRules(t, operator, put)
		client, err := dialWith(t, follower, token)
		if err != nil {
			t.Fatal(err)
		}
		client.Close()
	}
}

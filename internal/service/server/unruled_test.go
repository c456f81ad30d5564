package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
	"github.com/conclave-io/conclave/internal/service/version"
)

// callUnproven requires the code for every kind of call by an anonymous caller.
func callUnproven(t *testing.T, c *servertest.Cluster, id int, want codes.Code, page int) {
	t.Helper()
	client := dial(t, c.Address(id), nil)
	calls := map[string]func() error{
		"ping":   func() error { _, err := client.Ping(within(t), &api.PingRequest{}); return err },
		"status": func() error { _, err := client.Status(within(t), &api.StatusRequest{}); return err },
		"list":   func() error { _, err := client.List(within(t), &api.ListRequest{Stale: true}); return err },
		"whoami": func() error {
			_, err := client.Access(within(t), &api.AccessRequest{Ask: &api.AccessRequest_WhoAmI{WhoAmI: &api.WhoAmI{}}})
			return err
		},
		"attach": func() error {
			stream, err := client.Attach(within(t))
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
	}
	for what, call := range calls {
		if err := call(); status.Code(err) != want || want == codes.PermissionDenied && !strings.Contains(err.Error(), onSocketOnly+": run conclave access init") {
			t.Errorf("%s at server %d: %v; want %v", what, id, err, want)
		}
	}
	b := browse(t, c.Address(id))
	for path, code := range map[string]int{"/v1/locks": page, "/metrics": page, "/healthz": 200} {
		if got := b.do("GET", path, ""); got.status != code {
			t.Errorf("%s at server %d: %d %s; want %d", path, id, got.status, got.text, code)
		}
	}
}

// onSocketOnly is what both the log and the answer to a refused caller say.
const onSocketOnly = "the cluster has no rules of access yet, so a server that other machines can reach accepts only callers on its admin socket"

// TestClosedByDefault: until there are rules, a server that other machines can reach
// accepts only callers on its socket, and logs that. With rules, proofs count.
func TestClosedByDefault(t *testing.T) {
	t.Parallel()
	log := new(lines)
	c := servertest.Start(t, 3, servertest.Exposed, func(cfg *config.Server) {
		if cfg.ID == 2 {
			cfg.Log = slog.New(slog.NewTextHandler(log, nil))
		}
	})
	for id := 1; id <= 3; id++ {
		callUnproven(t, c, id, codes.PermissionDenied, 403)
	}
	if _, err := dialWith(t, c.Address(1), ""); !errors.Is(err, conclave.ErrDenied) {
		t.Errorf("a program is let in: %v", err)
	}
	servertest.Eventually(t, "the server says that nobody is let in", func() bool {
		return strings.Contains(log.String(), onSocketOnly)
	})
	for id := 1; id <= 3; id++ {
		at := program(t, "unix:"+filepath.Join(c.Config(id).Data, "admin.sock"), "")
		if who, err := admin.New(at).WhoAmI(t.Context()); err != nil || !strings.HasPrefix(who.Principal, "local:") {
			t.Errorf("through the socket of server %d: %+v, %v", id, who, err)
		}
	}
	operator := program(t, "unix:"+filepath.Join(c.Config(2).Data, "admin.sock"), "")
	atLevel(t, operator, version.Max)
	changeRules(t, operator, admin.PutBinding(admin.Binding{Who: "cert:alice", Roles: []string{"admin"}}), admin.SetMode("closed"))
	for id := 1; id <= 3; id++ {
		servertest.Eventually(t, "the rules count", func() bool {
			_, err := dial(t, c.Address(id), nil).Ping(within(t), &api.PingRequest{})
			return status.Code(err) == codes.Unauthenticated
		})
		callUnproven(t, c, id, codes.Unauthenticated, 401)
	}
}

// atLevel waits until the cluster is at a level. A cluster raises its level by itself, a moment after all
// servers run.
func atLevel(t *testing.T, client *conclave.Client, level uint32) {
	t.Helper()
	servertest.Eventually(t, fmt.Sprint("the level is ", level), func() bool {
		u, err := admin.New(client).Upgrade(within(t))
		return err == nil && u.Level == level
	})
}

// TestOpened: a server with --access open accepts all callers until there are rules, and
// logs that.
func TestOpened(t *testing.T) {
	t.Parallel()
	log := new(lines)
	c := servertest.Start(t, 3, servertest.Exposed, func(cfg *config.Server) {
		if cfg.ID != 3 {
			cfg.Access = "open"
		}
		if cfg.ID == 2 {
			cfg.Log = slog.New(slog.NewTextHandler(log, nil))
		}
	})
	callUnproven(t, c, 3, codes.PermissionDenied, 403)
	var held []*conclave.Lock
	for id := 1; id <= 2; id++ {
		opened := program(t, c.Address(id), "")
		lock, err := opened.Lock(t.Context(), "a"+c.Address(id))
		if err != nil {
			t.Fatalf("at server %d: %v", id, err)
		}
		held = append(held, lock)
		if text := browse(t, c.Address(id)).do("GET", "/metrics", "").text; !strings.Contains(text, `conclave_access_mode{mode="open"} 1`) {
			t.Errorf("the metrics of server %d do not say that it is open", id)
		}
	}
	servertest.Eventually(t, "the server says that everybody is let in", func() bool {
		return strings.Contains(log.String(), "anyone who can reach this server may do everything")
	})

	operator := program(t, "unix:"+filepath.Join(c.Config(1).Data, "admin.sock"), "")
	atLevel(t, operator, version.Max)
	change := admin.AccessChange{Force: true, Edits: []admin.AccessEdit{admin.SetMode("closed")}}
	if _, err := admin.New(operator).ChangeAccess(t.Context(), change); err == nil || !strings.Contains(err.Error(), "sessions of anonymous programs: 2 (s-") {
		t.Errorf("rules are turned on while anonymous programs have sessions: %v", err)
	}
	change.EndSessions = true
	if _, err := admin.New(operator).ChangeAccess(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	for _, lock := range held {
		select {
		case <-lock.Context().Done():
		case <-within(t).Done():
		}
		if err := context.Cause(lock.Context()); !errors.Is(err, conclave.ErrRevoked) {
			t.Errorf("the holder is told %v", err)
		}
		if err := lock.Unlock(t.Context()); err != nil {
			t.Errorf("the holder cannot release: %v", err)
		}
	}
	servertest.Eventually(t, "the sessions of anonymous programs are gone", func() bool {
		live, err := admin.New(operator).Sessions(t.Context())
		return err == nil && len(live) == 0
	})
}

// TestFromBefore: a cluster that was in use before rules existed continues to admit
// everyone: below the level of rules, at that level, and after every server has
// restarted.
func TestFromBefore(t *testing.T) {
	t.Parallel()
	var newest uint32 = version.Access - 1
	c := servertest.Start(t, 3, servertest.Exposed, func(cfg *config.Server) {
		cfg.Limits.Levels.Min, cfg.Limits.Levels.Max, cfg.Limits.LevelSoak = version.Min, newest, 1e6
	})
	operator := program(t, "unix:"+filepath.Join(c.Config(1).Data, "admin.sock"), "")
	held, err := operator.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	lets := func(id int) func() bool {
		return func() bool { return letsIn(t, c.Address(id), nil) }
	}
	age(t, c, operator, nil)
	newest = version.Access
	for id := 1; id <= 3; id++ {
		c.Stop(id)
		c.Restart(id)
		servertest.Eventually(t, "an upgraded server lets everybody in", lets(id))
	}
	atLevel(t, operator, version.Access)
	for id := 1; id <= 3; id++ {
		if !lets(id)() {
			t.Errorf("server %d locks out whoever was let in before", id)
		}
	}
	if err := held.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// letsIn reports whether a server answers a program without rights.
func letsIn(t *testing.T, address string, secrecy *tls.Config) bool {
	_, err := dial(t, address, secrecy).List(within(t), &api.ListRequest{})
	return err == nil
}

// age uses a new cluster without rules until its servers accept all callers. Each entry
// tells them the age of the cluster.
func age(t *testing.T, c *servertest.Cluster, operator *conclave.Client, secrecy *tls.Config) {
	t.Helper()
	for id := 1; id <= c.Servers(); id++ {
		servertest.Eventually(t, "a used cluster without rules lets everybody in", func() bool {
			if lock, err := operator.Lock(t.Context(), "b"); err != nil || lock.Unlock(t.Context()) != nil {
				t.Fatal(err)
			}
			return letsIn(t, c.Address(id), secrecy)
		})
	}
}

// A rolling upgrade of a cluster with TLS to the level of rules keeps its clients working, until an
// operator turns rules on. Then the rules decide.
func TestTLSFromBefore(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	var newest uint32 = version.Access - 1
	c := servertest.Start(t, 3, authority.Secure, func(cfg *config.Server) {
		servertest.Exposed(cfg)
		cfg.Insecure = false
		cfg.Limits.Levels.Min, cfg.Limits.Levels.Max, cfg.Limits.LevelSoak = version.Min, newest, 1e6
	})
	client := func(name string) *conclave.Client {
		client, err := conclave.Dial(within(t), conclave.Config{Servers: []string{c.Address(1), c.Address(2), c.Address(3)}, TLS: authority.Client(name)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		return client
	}
	enter := func(client *conclave.Client) error {
		lock, err := client.Lock(within(t), "jobs/b")
		if err != nil {
			return err
		}
		return lock.Unlock(within(t))
	}
	operator := program(t, "unix:"+filepath.Join(c.Config(1).Data, "admin.sock"), "")
	age(t, c, operator, authority.Client("other"))
	batch := client("batch")
	held, err := batch.Lock(within(t), "jobs/a")
	if err != nil {
		t.Fatal(err)
	}
	newest = version.Access
	for id := 1; id <= 3; id++ {
		c.Stop(id)
		c.Restart(id)
		if err := enter(batch); err != nil {
			t.Fatalf("after the upgrade of server %d: %v", id, err)
		}
	}
	atLevel(t, batch, version.Access)
	other := client("other")
	for _, client := range []*conclave.Client{batch, other} {
		if err := enter(client); err != nil {
			t.Errorf("at the level of rules: %v", err)
		}
	}
	if _, err := admin.New(operator).ChangeAccess(within(t), admin.AccessChange{Force: true, Edits: []admin.AccessEdit{
		admin.PutRole(admin.Role{Name: "jobs", Rules: []string{`allow read,hold on prefix "jobs/"`}}),
		admin.PutBinding(admin.Binding{Who: "cert:batch", Roles: []string{"jobs"}}),
		admin.SetMode("closed"),
	}}); err != nil {
		t.Fatal(err)
	}
	if err := enter(batch); err != nil {
		t.Errorf("with a role: %v", err)
	}
	if err := enter(other); !errors.Is(err, conclave.ErrDenied) {
		t.Errorf("without a role: %v", err)
	}
	if err := held.Unlock(within(t)); err != nil {
		t.Errorf("the lock that was held from before the upgrade: %v", err)
	}
}

// lines is a log that is read while it is written.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

package server_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/audit"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// grantsIn returns what an audit log says about holds, one text for each line, and checks the
// log.
func grantsIn(t *testing.T, path string) (texts []string) {
	t.Helper()
	log, err := os.ReadFile(path)
	if err != nil {
		return nil // not yet
	}
	verifier := audit.NewVerifier()
	for line := range bytes.Lines(log) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		verifier.Line(path, line)
		if l, err := audit.ParseLine(line); err == nil && l.Chain == audit.Grants {
			texts = append(texts, fmt.Sprintf("%s %s %q %d %s at %d", l.Kind, l.Target.Class, l.Target.Name, l.Target.Fence, l.Reason, l.Target.Server))
		}
	}
	if len(verifier.Problems) > 0 || verifier.Gaps > 0 {
		t.Errorf("%d gaps, %v in\n%s", verifier.Gaps, verifier.Problems, log)
	}
	return texts
}

// With --audit-grants every server writes the grants and the ends of the holds of some names,
// once each, also after a restart. The home of a guarded lock writes those of its clients.
func TestAuditGrants(t *testing.T) {
	t.Parallel()
	logOf := func(cfg *config.Server) string {
		return filepath.Join(filepath.Dir(cfg.Data), fmt.Sprint("audit-", cfg.ID, ".log"))
	}
	c := servertest.Start(t, 3, func(cfg *config.Server) {
		cfg.AuditLog, cfg.AuditGrants = logOf(cfg), "pay/"
		cfg.Limits.LevelSoak, cfg.Election = 1e6, time.Second
	})
	client, err := conclave.Dial(within(t), conclave.Config{Servers: c.Addresses(), TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var want []string
	lock := func(name string) {
		t.Helper()
		l, err := client.Lock(within(t), name)
		if err != nil {
			t.Fatal(err)
		}
		fence, err := l.Fence()
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(within(t)); err != nil {
			t.Fatal(err)
		}
		if name != "other" {
			want = append(want, fmt.Sprintf(`grant lock %q %d  at 0`, name, fence), fmt.Sprintf(`end lock %q %d released at 0`, name, fence))
		}
	}
	everywhere := func() {
		t.Helper()
		for id := 1; id <= 3; id++ {
			cfg := c.Config(id)
			servertest.Eventually(t, fmt.Sprintf("server %d has written %q", id, want), func() bool { return slices.Equal(grantsIn(t, logOf(&cfg)), want) })
		}
	}
	lock("pay/a")
	lock("other")
	lock("pay/b")
	everywhere()
	follower := c.Follower()
	c.Stop(follower)
	c.Restart(follower)
	lock("pay/c")
	everywhere()

	first := dial(t, c.Address(1), nil)
	risen(t, c, 3)
	setGuard(t, c, 3, &api.SetGuardRequest{Prefix: "pay/live/", Algorithm: "central"})
	home := attachHome(t, first)
	home.do(open(time.Minute), api.Code_CODE_OK)
	held := home.send(acquire("pay/live/x"))
	fence := home.granted(held).GetFence()
	home.do(&api.Request{Op: &api.Request_Release{Release: &api.Release{Hold: held}}}, api.Code_CODE_OK)
	cfg := c.Config(1)
	want = append(want, fmt.Sprintf(`grant lock "pay/live/x" %d  at 1`, fence), fmt.Sprintf(`end lock "pay/live/x" %d released at 1`, fence))
	servertest.Eventually(t, fmt.Sprintf("the home has written %q", want), func() bool { return slices.Equal(grantsIn(t, logOf(&cfg)), want) })
}

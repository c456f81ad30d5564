//go:build linux

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/admin"
)

// expectations calls conclave expect with arguments, at the cluster.
func (c *crontab) expectations(args ...string) (status int, out, said string) {
	return call(c.t, append([]string{"expect", "--servers", strings.Join(c.cluster.Addresses(), ","), "--timeout", testTimeout.String()}, args...)...)
}

// A rule is set, the job runs, and all servers are killed and started. They still know when the lock was
// last held, by whom, and that it is overdue once the period has passed without a run.
func TestAJobThatDoesNotRunIsSeen(t *testing.T) {
	t.Parallel()
	c := startCrontab(t)
	if status, _, said := c.expectations("set", "report", "--every", "24h"); status != 0 {
		t.Fatalf("expect set exits with %d: %s", status, said)
	}
	if status, said := c.machine(time.Hour); status != 0 || c.ran() != 1 {
		t.Fatalf("the job exits with %d: %s", status, said)
	}
	rules, err := admin.New(c.client).Expected(within(t))
	if err != nil || len(rules) != 1 || rules[0].Last.How != "released" || rules[0].Last.Program == "" || rules[0].Overdue || rules[0].Held {
		t.Fatalf("after the run, the rules are %+v, %v", rules, err)
	}
	if status, out, said := c.expectations("check"); status != 0 || out != "" {
		t.Errorf("expect check exits with %d: %s%s", status, out, said)
	}
	for id := range c.cluster.Servers() {
		if err := c.cluster.Kill(id + 1); err != nil {
			t.Fatal(err)
		}
	}
	startAgain(t, c.cluster, 1, 2, 3)
	again, err := admin.New(c.client).Expected(within(t))
	if err != nil || len(again) != 1 || again[0].Last != rules[0].Last || again[0].Idle < rules[0].Idle {
		t.Fatalf("after a crash of all servers, the rules are %+v, %v\nwant %+v", again, err, rules)
	}
	if status, _, said := c.expectations("set", "report", "--every", "2s"); status != 0 {
		t.Fatalf("expect set exits with %d: %s", status, said)
	}
	until(t, "the job is overdue", func() bool {
		status, out, said := c.expectations("check", "report")
		if status == 1 && (!strings.HasPrefix(out, `lock "report": not held for `) || !strings.Contains(out, ", expected every 2s; last held by process ")) {
			t.Errorf("expect check says %s%s", out, said)
		}
		return status == 1
	})
	if status, out, said := c.expectations(); status != 0 || !strings.Contains(out, "report") || !strings.Contains(out, "yes") {
		t.Errorf("expect exits with %d: %s%s", status, out, said)
	}
	if status, _, said := c.expectations("check", "unknown"); status != 125 || !strings.Contains(said, `lock "unknown": has no rule; set one with conclave expect set`) {
		t.Errorf("of a name without a rule, expect check exits with %d: %s", status, said)
	}
	for _, want := range []int{0, 1} {
		if status, _, said := c.expectations("remove", "report"); status != want {
			t.Errorf("expect remove exits with %d, want %d: %s", status, want, said)
		}
	}
}

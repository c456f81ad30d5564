//go:build linux

package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/local"
)

// newest waits until a cluster is at a level that has settings, and returns a flag with its servers.
func newest(t *testing.T, cluster *local.Cluster) []string {
	t.Helper()
	client := dial(t, conclave.Config{Servers: cluster.Addresses()})
	until(t, "the level is that of settings", func() bool {
		u, err := admin.New(client).Upgrade(within(t))
		return err == nil && u.Level >= 5
	})
	return []string{"--servers", strings.Join(cluster.Addresses(), ",")}
}

// TestNFC: after conclave settings set names nfc, a name that looks like another one is refused, also by the
// next leader and after a restart of all. What is held stays, and is opened by release --force.
func TestNFC(t *testing.T) {
	t.Parallel()
	const composed, decomposed = "caf\u00e9", "cafe\u0301"
	cluster := startCluster(t, 3)
	at := newest(t, cluster)
	client := dial(t, conclave.Config{Servers: cluster.Addresses()})
	held, err := client.TryLock(within(t), decomposed)
	if err != nil {
		t.Fatal(err)
	}
	status, out, said := call(t, append([]string{"settings", "set", "names", "nfc"}, at...)...)
	if want := "conclave: names in use that are not in the form NFC, which stay: 1: lock \"cafe\\u0301\"\n"; status != 0 || said != want || !strings.Contains(out, "\nnames  nfc ") {
		t.Fatalf("status %d, %q, %q; want %q", status, out, said, want)
	}
	refused := func() {
		t.Helper()
		for _, command := range [][]string{{"lock", "--try"}, {"elect", "--value", "v"}} {
			args := append(append(command, at...), decomposed+"/x", "--", "true")
			if status, _, said := call(t, args...); status != 125 || !strings.Contains(said, `name: "cafe\u0301/x": is not in the Unicode form NFC; use "café/x", or see conclave settings`) {
				t.Errorf("%q: status %d, %q", args, status, said)
			}
		}
	}
	refused()
	leader := leaderOf(t, client)
	if err := cluster.Kill(leader); err != nil {
		t.Fatal(err)
	}
	refused()
	startAgain(t, cluster, leader)
	if err := held.Unlock(within(t)); err != nil {
		t.Errorf("the lock in the other form is not released: %v", err)
	}
	for id := 1; id <= 3; id++ {
		if err := cluster.Kill(id); err != nil {
			t.Fatal(err)
		}
	}
	startAgain(t, cluster, 1, 2, 3)
	refused()
	if status, _, said := call(t, append(append([]string{"lock", "--try"}, at...), composed+"/x", "--", "true")...); status != 0 {
		t.Errorf("a composed name: status %d, %q", status, said)
	}
	for _, set := range []string{"any", "nfc"} {
		if set == "nfc" {
			if held, err = client.TryLock(within(t), decomposed+"/forced"); err != nil {
				t.Fatal(err)
			}
		}
		if status, _, said := call(t, append([]string{"settings", "set", "names", set}, at...)...); status != 0 {
			t.Fatalf("status %d, %q", status, said)
		}
	}
	if status, _, said := call(t, append([]string{"release", "--force", "--reason", "test", decomposed + "/forced"}, at...)...); status != 0 {
		t.Errorf("release --force of a name in the other form: status %d, %q", status, said)
	}
	<-held.Context().Done()
}

func leaderOf(t *testing.T, client *conclave.Client) (leader int) {
	t.Helper()
	until(t, "there is a leader", func() bool {
		s, err := admin.New(client).Status(within(t))
		leader = int(s.Leader)
		return err == nil && leader != 0
	})
	return leader
}

// TestLastBackupOnRecord: all servers show when conclave snapshot save last ended, also after all were killed.
func TestLastBackupOnRecord(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 3)
	at := newest(t, cluster)
	if status, _, said := call(t, append([]string{"snapshot", "save", t.TempDir() + "/backup"}, at...)...); status != 0 {
		t.Fatalf("status %d, %q", status, said)
	}
	shown := func(id int) bool {
		answer, err := http.Get("http://" + cluster.Addresses()[id-1] + "/metrics")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return err == nil && strings.Contains(string(text), "\nconclave_backup_last_timestamp_seconds ")
	}
	for id := 1; id <= 3; id++ {
		until(t, "a server shows the last backup", func() bool { return shown(id) })
	}
	for id := 1; id <= 3; id++ {
		if err := cluster.Kill(id); err != nil {
			t.Fatal(err)
		}
	}
	startAgain(t, cluster, 1, 2, 3)
	for id := 1; id <= 3; id++ {
		until(t, "a server shows the last backup after all were killed", func() bool { return shown(id) })
	}
}

package e2e

import (
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/local"
)

// copyData copies the regular files of the data directory of a server that runs.
func copyData(t *testing.T, from string) (to string) {
	t.Helper()
	to = filepath.Join(t.TempDir(), "copy")
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rest)
		switch {
		case entry.IsDir():
			return os.MkdirAll(target, 0o700)
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if os.IsNotExist(err) { // a file that the server has renamed or removed
			return nil
		}
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// runCopy starts a process with a copy of the data of a server, and returns how it ends. If the server
// made a snapshot while its data was copied, the copy may lack it: another one is made then.
func runCopy(t *testing.T, cluster *local.Cluster, id int) (status int, said string) {
	t.Helper()
	until(t, "a copy is whole", func() bool {
		status, _, said = call(t, cluster.Command(id, "--data", copyData(t, cluster.Dir(id)), "--listen", "127.0.0.1:0", "--peer-listen", "127.0.0.1:0", "--log-level", "error")...)
		return !strings.HasPrefix(said, "conclave: store: ")
	})
	return status, said
}

// copiesRefused returns how many connections of copies of a server another one has refused, by its
// metrics, as text.
func copiesRefused(t *testing.T, address, peer string) string {
	t.Helper()
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`conclave_peer_copies_refused_total\{peer="` + peer + `"\} (\d+)`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("server at %s has no metric of the copies of server %s", address, peer)
	}
	return string(found[1])
}

// logs returns how often the log of a server has a text.
func logs(t *testing.T, c *local.Cluster, id int, text string) int {
	t.Helper()
	log, err := os.ReadFile(c.LogFile(id))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(log), text)
}

// TestCopyOfARunningServer starts a process with a copy of the data directory of server 2, while
// server 2 runs. It ends with status 78 and one line that has both addresses. The other servers log
// it, count it and list it, and server 2, which continues to be connected, logs it too. Then the
// copy of the leader is started.
func TestCopyOfARunningServer(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 3)
	client := dial(t, conclave.Config{Servers: cluster.Addresses()})
	allConnected(t, client)
	status, said := runCopy(t, cluster, 2)
	if status != 78 {
		t.Errorf("it exits with %d", status)
	}
	// Of two processes that started within 5 s, the nonces decide which one counts as the earlier.
	line := regexp.MustCompile(`two processes run with the data of server 2: one at \S+ \(from 127\.0\.0\.1\) is connected to server [13], the other at \S+ \(from 127\.0\.0\.1\) has started (?:later|earlier) and is refused; stop the copy and delete its data directory\n`)
	if found := line.FindAllString(said, -1); len(found) != 1 {
		t.Errorf("it does not say once what is wrong:\n%s", said)
	}
	for _, id := range []int{1, 3} {
		until(t, "the others log it", func() bool { return logs(t, cluster, id, "two processes run with the data of server 2") > 0 })
		until(t, "the others count it", func() bool { return copiesRefused(t, cluster.Addresses()[id-1], "2") != "0" })
	}
	until(t, "server 2 logs it", func() bool {
		return logs(t, cluster, 2, "another process runs with a copy of the data of this server") > 0
	})
	for _, address := range cluster.Addresses() { // whoever leads, and is asked
		until(t, "member list shows it", func() bool {
			_, stdout, _ := call(t, "member", "list", "--servers", address)
			return strings.Contains(stdout, "two processes run with the data of server 2: the one at ")
		})
	}
	members, err := admin.New(client).Members(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		if (m.CopyAddress != "") != (m.ID == 2) || m.CopyRefused.IsZero() != (m.ID != 2) {
			t.Errorf("%+v", m)
		}
	}
	allConnected(t, client)

	asked, err := admin.New(client).Status(within(t))
	if err != nil {
		t.Fatal(err)
	}
	leader := int(asked.Leader)
	status, said = runCopy(t, cluster, leader)
	if status != 78 || !strings.Contains(said, "two processes run with the data of server ") {
		t.Errorf("the copy of the leader exits with %d and says %s", status, said)
	}
	lock, err := client.Lock(within(t), "still served")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(within(t)); err != nil {
		t.Fatal(err)
	}
}

// TestRestartsAreNoCopies: a server that was killed, stopped in order, or paused until its
// connections had ended, and comes back with the same data, is connected again and refused by nobody.
func TestRestartsAreNoCopies(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 3)
	client := dial(t, conclave.Config{Servers: cluster.Addresses()})
	allConnected(t, client)
	for round := range 4 {
		end := cluster.Kill
		if round%2 == 1 {
			end = cluster.End
		}
		if err := end(2); err != nil {
			t.Fatal(err)
		}
		if err := cluster.Restart(2); err != nil {
			t.Fatal(err)
		}
		allConnected(t, client)
	}
	connected := func() bool {
		return logs(t, cluster, 1, `msg="connected to peer" peer=2`) > logs(t, cluster, 1, `msg="lost the connection to peer" peer=2`)
	}
	until(t, "server 1 is connected to it", connected) // the client asks any of the three
	if err := cluster.Signal(2, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	until(t, "server 1 has lost it", func() bool { return !connected() })
	if err := cluster.Signal(2, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	allConnected(t, client)
	for id := 1; id <= 3; id++ {
		if logs(t, cluster, id, "two processes run with the data") > 0 {
			t.Errorf("server %d takes a server for a copy", id)
		}
	}
	for _, id := range []int{1, 3} {
		if n := copiesRefused(t, cluster.Addresses()[id-1], "2"); n != "0" {
			t.Errorf("server %d has refused %s copies", id, n)
		}
	}
}

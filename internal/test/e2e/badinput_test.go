//go:build linux

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// call runs the binary and returns its exit status and what it said.
func call(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("conclave %q hangs; it said: %s", args, said.String())
	}
	return cmd.ProcessState.ExitCode(), out.String(), said.String()
}

// refused calls the binary and checks that it prints one line with the given words, and
// exits with the status.
func refused(t *testing.T, status int, words []string, args ...string) {
	t.Helper()
	got, stdout, said := call(t, args...)
	if got != status {
		t.Errorf("conclave %q exits with %d, want %d; it said: %s", args, got, status, said)
	}
	if stdout != "" || strings.Count(said, "\n") != 1 {
		t.Errorf("conclave %q does not say one line on standard error:\n%s%s", args, stdout, said)
	}
	for _, word := range words {
		if !strings.Contains(said, word) {
			t.Errorf("conclave %q says %q, without %q", args, said, word)
		}
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	server := cluster.Addresses()[0]
	for _, c := range []struct {
		name  string
		words []string
		args  []string
	}{
		{"unknown command", []string{`"lok"`, `"lock"`}, []string{"lok"}},
		{"no name", []string{"NAME"}, []string{"lock"}},
		{"no command", []string{"COMMAND"}, []string{"lock", "a"}},
		{"empty name", []string{"1 to 512"}, []string{"lock", "", "--", "true"}},
		{"long name", []string{"513", "512"}, []string{"lock", strings.Repeat("x", 513), "--", "true"}},
		{"control character", []string{"control", `\n`}, []string{"lock", "a\nb", "--", "true"}},
		{"name that is no text", []string{"UTF-8"}, []string{"lock", "a\xff", "--", "true"}},
		{"zero TTL", []string{"0s", "100ms", "1h"}, []string{"lock", "a", "--ttl", "0s", "--", "true"}},
		{"absurd TTL", []string{"9000h", "100ms", "1h"}, []string{"lock", "a", "--ttl", "9000h", "--", "true"}},
		{"TTL without a unit", []string{`"5"`, "5s"}, []string{"lock", "a", "--ttl", "5", "--", "true"}},
		{"unreachable cluster", []string{"127.0.0.1:1", "refused"}, []string{"lock", "a", "--servers", "127.0.0.1:1", "--timeout", "500ms", "--", "true"}},
		{"address that is none", []string{`"here"`, "host:port"}, []string{"status", "--servers", "here"}},
		{"wrong cluster", []string{"0123456789abcdef", server}, []string{"status", "--servers", server, "--cluster", "0123456789abcdef"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			refused(t, 125, c.words, c.args...)
		})
	}
}

// TestWrongTLS connects in ways that are permanently wrong. The error comes at once and
// names the flag.
func TestWrongTLS(t *testing.T) {
	t.Parallel()
	authority, stranger := servertest.NewAuthority(t), servertest.NewAuthority(t)
	cert, key := authority.Issue("server")
	secure := startCluster(t, 1, "--tls-cert", cert, "--tls-key", key, "--tls-ca", authority.File)
	plain := startCluster(t, 1)
	dial(t, conclave.Config{Servers: secure.Addresses(), TLS: authority.Client("program")}) // it is up
	dial(t, conclave.Config{Servers: plain.Addresses()})
	began := time.Now()
	at := secure.Addresses()[0]
	refused(t, 125, []string{at + ": TLS: certificate signed by unknown authority; set --cacert to "}, "status", "--servers", at, "--cacert", stranger.File, "--timeout", "1m")
	refused(t, 125, []string{at + ": TLS: ", "; set --cert and --key to "}, "status", "--servers", at, "--cacert", authority.File, "--timeout", "1m")
	at = plain.Addresses()[0]
	refused(t, 125, []string{at + ": TLS: the server does not speak TLS; remove --cacert, --cert and --key"}, "lock", "x", "--servers", at, "--cacert", authority.File, "--", "true")
	if took := time.Since(began); took > time.Minute {
		t.Errorf("three mistakes take %v: each is said at once, not after the minute of --timeout", took)
	}
}

// validFrom makes a certificate valid for an hour, from a time on.
func validFrom(start time.Time) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.NotBefore, c.NotAfter = start, start.Add(time.Hour) }
}

// TestCertificatesOutOfTime shows certificates that are not valid now, as on a machine whose clock is
// wrong. The error comes at once and says so. It came after 10 seconds, and called the server no
// Conclave server.
func TestCertificatesOutOfTime(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	cert, key := authority.Issue("server")
	secure := startCluster(t, 1, "--tls-cert", cert, "--tls-key", key, "--tls-ca", authority.File)
	dial(t, conclave.Config{Servers: secure.Addresses(), TLS: authority.Client("program")}) // it is up
	at := secure.Addresses()[0]
	for start, want := range map[time.Time]string{
		time.Now().Add(-3 * time.Hour): ": expired at ", time.Now().Add(3 * time.Hour): ": valid from ",
	} {
		cert, key := authority.Issue("program", validFrom(start))
		refused(t, 125, []string{"--cert: " + cert + want, "the clock of this machine shows", "set the clock"},
			"status", "--servers", at, "--cacert", authority.File, "--cert", cert, "--key", key, "--timeout", "1m")

		// The clock of the server decides if that of the client is right.
		files, err := conclave.TLSFiles(cert, key, authority.File)
		if err != nil {
			t.Fatal(err)
		}
		_, err = conclave.Dial(within(t), conclave.Config{Servers: []string{at}, TLS: files})
		var failed *conclave.TLSError
		if !errors.As(err, &failed) || failed.Problem != conclave.ClientRefused || !strings.Contains(err.Error(), "the server refused the client certificate: expired certificate") {
			t.Errorf("Dial: %v", err)
		}
	}
	refused(t, 125, []string{": TLS: the certificate of the server has expired or is not valid yet: current time ", "; set the clock of this machine, or "},
		"status", "--servers", handshakes(t, authority, validFrom(time.Now().Add(-3*time.Hour))), "--cacert", authority.File, "--timeout", "1m")
	elsewhere := func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"db1.example.com"} }
	refused(t, 125, []string{": TLS: cannot validate certificate for 127.0.0.1", "; set --servers to a host that the certificate names"},
		"status", "--servers", handshakes(t, authority, elsewhere), "--cacert", authority.File, "--timeout", "1m")
}

// handshakes returns an address where handshakes are made, with a certificate, and nothing else.
func handshakes(t *testing.T, by *servertest.Authority, change func(*x509.Certificate)) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(by.Issue("handshakes", change))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).HandshakeContext(t.Context()) // the client ends it
			conn.Close()
		}
	}()
	t.Cleanup(func() { listener.Close(); <-ended })
	return listener.Addr().String()
}

// TestWithoutProc runs a command where /proc is not mounted. The error names it.
func TestWithoutProc(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/proc").CombinedOutput(); err != nil {
		t.Skipf("no namespace for mounts: %v %s", err, out)
	}
	cluster := startCluster(t, 1)
	dial(t, conclave.Config{Servers: cluster.Addresses()}) // it is up
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	const script = `mount -t tmpfs none /proc && exec "$@"`
	out, err := exec.CommandContext(ctx, "unshare", "-Urm", "sh", "-c", script, "sh", binary, "lock", "x", "--servers", cluster.Addresses()[0], "--", "true").CombinedOutput()
	var ended *exec.ExitError
	if want := "conclave: guard: cannot start the guard process: /proc/self/exe: no such file or directory; mount /proc\n"; !errors.As(err, &ended) || ended.ExitCode() != 125 || string(out) != want {
		t.Errorf("%v, %q", err, out)
	}
}

// TestServersThatCannotBe starts servers that would harm a cluster.
func TestServersThatCannotBe(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	dial(t, conclave.Config{Servers: cluster.Addresses()}) // it is up
	busy, data := cluster.Addresses()[0], cluster.Dir(1)

	refused(t, 78, []string{"0.0.0.0:7400", "--tls-cert", "--insecure"}, "serve", "--listen", "0.0.0.0:7400", "--advertise", "10.0.0.1:7400", "--data", t.TempDir())

	refused(t, 125, []string{busy, "taken", "--listen"}, "serve", "--data", t.TempDir(), "--listen", busy, "--peer-listen", "127.0.0.1:0")
	// The same settings as the server that runs, but for the addresses.
	refused(t, 125, []string{data, "in use by process"}, cluster.Command(1, "--listen", "127.0.0.1:0", "--peer-listen", "127.0.0.1:0")...)
	if err := cluster.Kill(1); err != nil {
		t.Fatal(err)
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, 78, []string{foreign, "thesis.tex", "empty"}, "serve", "--data", foreign, "--listen", "127.0.0.1:0", "--peer-listen", "127.0.0.1:0")
	refused(t, 78, []string{data, "belongs to cluster"}, "serve", "--data", data, "--listen", "127.0.0.1:0", "--peer-listen", "127.0.0.1:0", "--cluster-name", "other")
}

// TestDataOfAnotherServer starts server 2 on the data of server 1.
func TestDataOfAnotherServer(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 3)
	allConnected(t, dial(t, conclave.Config{Servers: cluster.Addresses()})) // each has data of its own
	for _, id := range []int{1, 2} {
		if err := cluster.Kill(id); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, 78, []string{cluster.Dir(1), "server 1", "2"}, cluster.Command(2, "--data", cluster.Dir(1))...)
}

// allConnected waits until the server of a client is connected to both others.
func allConnected(t *testing.T, client *conclave.Client) {
	t.Helper()
	until(t, "all servers are connected", func() bool {
		status, err := admin.New(client).Status(within(t))
		connected := 0
		for _, m := range status.Members {
			if m.Connected || m.ID == status.Server {
				connected++
			}
		}
		return err == nil && connected == 3
	})
}

// TestTwoServersWithOneID starts a second server 2 while the first one lives.
func TestTwoServersWithOneID(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 3)
	client := dial(t, conclave.Config{Servers: cluster.Addresses()})
	allConnected(t, client)
	status, _, said := call(t, cluster.Command(2, "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--peer-listen", "127.0.0.1:0", "--log-level", "warn")...)
	if status != 125 || strings.Count(said, "two servers have the id 2") != 1 {
		t.Errorf("a second server 2 exits with %d and says, not once and in one line why:\n%s", status, said)
	}
	lock, err := client.Lock(within(t), "still served")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestUnlockOfWhatIsNotHeld(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	client := dial(t, conclave.Config{Servers: cluster.Addresses()})
	lock, err := client.Lock(within(t), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(within(t)); !errors.Is(err, conclave.ErrNotHeld) {
		t.Errorf("a second unlock gives %v", err)
	}
	if _, err := lock.Fence(); err == nil {
		t.Error("a lock that was given back has a fence")
	}
}

// TestQuorumLost kills two servers of three. Nothing hangs, holds are lost in time, and
// everything continues when one server is back.
func TestQuorumLost(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 3)
	client := dial(t, conclave.Config{Servers: cluster.Addresses(), TTL: 2 * time.Second})
	held, err := client.Lock(within(t), "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []int{1, 2} {
		if err := cluster.Kill(id); err != nil {
			t.Fatal(err)
		}
	}
	servers := strings.Join(cluster.Addresses(), ",")
	refused(t, 125, []string{"within 1s"}, "lock", "b", "--servers", servers, "--timeout", "1s", "--", "true")
	refused(t, 125, []string{"did not answer within 700ms"}, "lock", "b", "--servers", servers, "--wait", "700ms", "--", "true")
	select {
	case <-held.Context().Done():
	case <-time.After(testTimeout):
		t.Fatal("without a quorum a lock is still believed to be held")
	}
	short, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	if _, err := client.Lock(short, "b"); err == nil {
		t.Fatal("a lock was granted without a quorum")
	}
	if err := cluster.Restart(1); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Lock(within(t), "b"); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedLogIsRefused flips a byte in the middle of the log of a server.
func TestDamagedLogIsRefused(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	client := dial(t, conclave.Config{Servers: cluster.Addresses()})
	for range 20 {
		lock, err := client.Lock(within(t), "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Unlock(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	if err := cluster.Signal(1, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Kill(1); err != nil {
		t.Log(err) // it was dead already
	}
	segments, err := filepath.Glob(filepath.Join(cluster.Dir(1), "wal", "*.wal"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("no log to damage: %v", err)
	}
	log, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	log[600] ^= 0x40
	if err := os.WriteFile(segments[0], log, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, 78, []string{segments[0], "corrupt at byte"}, cluster.Command(1)...)
}

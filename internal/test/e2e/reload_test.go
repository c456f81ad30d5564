//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// TestHangupReloads lets three servers reload their certificates 100 times under load. No
// session is lost, and new connections get the newest certificate.
func TestHangupReloads(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	config := filepath.Join(t.TempDir(), "conclave.toml")
	settings := func(level, more string) {
		t.Helper()
		if err := os.WriteFile(config, fmt.Appendf(nil, "log-level = %q\n%s", level, more), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	settings("warn", "")
	cert, key := authority.Issue("server")
	peerCert, peerKey := authority.Issue("peer")
	cluster := startCluster(t, 3, "--config", config, "--tls-cert", cert, "--tls-key", key, "--tls-ca", authority.File,
		"--peer-cert", peerCert, "--peer-key", peerKey, "--peer-ca", authority.File)
	program := authority.Client("program")
	client := dial(t, conclave.Config{Servers: cluster.Addresses(), TLS: program})
	held, err := client.Lock(within(t), "kept")
	if err != nil {
		t.Fatal(err)
	}
	hangUp := func() {
		t.Helper()
		for id := 1; id <= cluster.Servers(); id++ {
			if err := cluster.Signal(id, syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
		}
	}
	shown := func(address string) []byte {
		conn, err := tls.Dial("tcp", address, program)
		if err != nil {
			t.Error(err)
			return nil
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Raw
	}
	stop := make(chan struct{})
	var load sync.WaitGroup
	served := make([]int, 4)
	for i := range served {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				lock, err := client.Lock(within(t), fmt.Sprint("x", i))
				if err == nil {
					err = lock.Unlock(within(t))
				}
				if err != nil {
					t.Error(err)
					return
				}
				served[i]++
			}
		})
	}
	for range 100 {
		authority.Issue("server")
		authority.Issue("peer")
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		hangUp()
		for _, address := range cluster.Addresses() {
			until(t, "new connections see the new certificate", func() bool { return bytes.Equal(shown(address), pair.Certificate[0]) })
		}
	}
	close(stop)
	load.Wait()
	t.Logf("%v locks were taken meanwhile", served)
	if err := held.Context().Err(); err != nil {
		t.Errorf("the lock that was held all the time is lost: %v", err)
	}

	said := func(words ...string) func() bool {
		return func() bool {
			log, err := os.ReadFile(cluster.LogFile(1))
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range words {
				if !strings.Contains(string(log), word) {
					return false
				}
			}
			return true
		}
	}
	if said("reloaded the certificates")() {
		t.Error("a server whose log level is warn says what is an info")
	}
	settings("info", "heartbeat = \"70ms\"\n")
	hangUp()
	until(t, "the log level is another one", said(`msg="log level changed" from=warn to=info`,
		`msg="changed settings require a restart" settings="heartbeat, election-timeout, view-lease"`))
	hangUp()
	until(t, "the server says what is an info", said("reloaded the certificates"))
	settings("noise", "")
	hangUp()
	until(t, "the settings are refused", said("settings reloaded but invalid, the previous ones stay in use", "noise"))
	if err := cluster.Died(); err != nil {
		t.Error(err)
	}
}

// TestHangupOfATerminal: a server that runs in a terminal stops when the terminal is
// closed, as with Ctrl-C.
func TestHangupOfATerminal(t *testing.T) {
	t.Parallel()
	keys, tty := openTerminal(t)
	defer keys.Close()
	cmd := exec.Command(binary, "serve", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--peer-listen", "127.0.0.1:0")
	cmd.Stdin = tty
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	lines := bufio.NewScanner(said)
	if !lines.Scan() || !strings.Contains(lines.Text(), "takes clients at") {
		t.Errorf("it says %q", lines.Text())
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v, want 0", err)
	}
}

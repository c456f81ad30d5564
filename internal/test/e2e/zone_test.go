//go:build linux

package e2e

import (
	"bufio"
	"crypto/x509"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// TestAddressWithAZone reaches a server at an IPv6 address with a zone, as link-local addresses have.
// It failed after the whole timeout, with an error of Go's parser of URLs.
func TestAddressWithAZone(t *testing.T) {
	t.Parallel()
	probe, err := net.Listen("tcp", "[::1%lo]:0")
	if err != nil {
		t.Skip("no IPv6: ", err)
	}
	probe.Close()
	authority := servertest.NewAuthority(t)
	cert, key := authority.Issue("server", func(c *x509.Certificate) { c.IPAddresses = append(c.IPAddresses, net.IPv6loopback) })
	for name, flags := range map[string][]string{"plain": nil, "TLS": {"--tls-cert", cert, "--tls-key", key}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startAt(t, "[::1%lo]:0", flags...)
			if !strings.HasPrefix(server, "[::1") {
				t.Fatalf("the server listens at %s", server)
			}
			_, port, err := net.SplitHostPort(server)
			if err != nil {
				t.Fatal(err)
			}
			at := "[::1%lo]:" + port
			ask := []string{"--servers", at}
			cfg := conclave.Config{Servers: []string{at}}
			if flags != nil {
				ask, cfg.TLS = append(ask, "--cacert", authority.File), authority.Client("program")
			}
			lockUnder(t, within(t), dial(t, cfg), "x")
			if status, out, said := call(t, append([]string{"locks"}, ask...)...); status != 0 || !strings.Contains(out, "x ") {
				t.Errorf("status %d, %q, %q", status, out, said)
			}
		})
	}
}

// startAt starts a server of its own that listens at an address, and returns where it takes clients.
func startAt(t *testing.T, listen string, flags ...string) string {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"serve", "--data", filepath.Join(t.TempDir(), "data"), "--listen", listen, "--peer-listen", "127.0.0.1:0"}, flags...)...)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(pipe).ReadString('\n')
	_, at, found := strings.Cut(line, "takes clients at ")
	if err != nil || !found {
		t.Fatalf("it says %q, %v", line, err)
	}
	address, _, _ := strings.Cut(at, " ")
	return address
}

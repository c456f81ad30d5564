// Package proxies tests what docs/proxies.md says of nginx and haproxy, with the configurations that are
// on that page. It is skipped where they are not installed: make proxy-check requires them.
package proxies

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// proxy is a way to run a proxy.
type proxy struct {
	name string // of the program, and of its blocks on the page
	// run starts it with a configuration, and returns when it listens at the address.
	run func(t *testing.T, address, config string)
}

var both = []proxy{{"nginx", runNginx}, {"haproxy", runHaproxy}}

// tool returns the path of a program that only make proxy-check requires.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/" + name); err == nil {
			return path
		}
	}
	if err != nil && os.Getenv("PROXIES_REQUIRED") != "" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// blocks returns the configurations of a proxy that are on the page.
func blocks(t *testing.T, name string) []string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/proxies.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, match := range regexp.MustCompile("(?s)```"+name+"\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		found = append(found, match[1])
	}
	return found
}

// edit replaces each old text, which has to be there, by the new one after it.
func edit(t *testing.T, text string, oldAndNew ...string) string {
	t.Helper()
	for i := 0; i < len(oldAndNew); i += 2 {
		if !strings.Contains(text, oldAndNew[i]) {
			t.Fatalf("there is no %q in\n%s", oldAndNew[i], text)
		}
		text = strings.ReplaceAll(text, oldAndNew[i], oldAndNew[i+1])
	}
	return text
}

// before starts a proxy with the first configuration on the page and some edits, before servers at some
// addresses. It returns the address of the proxy.
func (p proxy) before(t *testing.T, servers []string, edits ...string) string {
	t.Helper()
	config := edit(t, blocks(t, p.name)[0], edits...)
	return p.start(t, config, servers)
}

// start starts a proxy with a configuration from the page.
func (p proxy) start(t *testing.T, config string, servers []string) string {
	t.Helper()
	address := freeAddress(t)
	config = regexp.MustCompile(`(listen|bind) :?\d+`).ReplaceAllString(config, "$1 "+address)
	for i := 1; i <= 3; i++ {
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^.*10\.0\.0\.%d:7400.*\n`, i))
		if i > len(servers) {
			config = line.ReplaceAllString(config, "")
			continue
		}
		config = strings.ReplaceAll(config, fmt.Sprintf("10.0.0.%d:7400", i), servers[i-1])
	}
	p.run(t, address, config)
	return address
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func runNginx(t *testing.T, address, config string) {
	t.Helper()
	dir := t.TempDir()
	head := "daemon off;\npid nginx.pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		head += fmt.Sprintf("%s_temp_path %s;\n", kind, filepath.Join(dir, kind))
	}
	if os.Getuid() == 0 {
		head = "user root;\n" + head
	}
	path := filepath.Join(dir, "nginx.conf")
	writeFile(t, path, head+config+"}\n")
	runUntilTheEnd(t, address, tool(t, "nginx"), "-p", dir, "-c", path, "-e", "stderr")
}

func runHaproxy(t *testing.T, address, config string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "haproxy.cfg")
	writeFile(t, path, config)
	runUntilTheEnd(t, address, tool(t, "haproxy"), "-db", "-f", path)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runUntilTheEnd runs a program until the test ends, and returns when it listens at an address.
func runUntilTheEnd(t *testing.T, address, program string, args ...string) {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(time.Minute):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", program, said.String())
		}
	})
	servertest.Eventually(t, program+" listens", func() bool {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s has ended: %v\n%s", program, err, said.String())
		default:
		}
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

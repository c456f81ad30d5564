//go:build linux

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/service/version"
	"github.com/conclave-io/conclave/internal/test/selftest"
)

// tutorial matches the commands of a document, and their output if the document shows it.
var tutorial = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?")

// TestTwoTeams runs the tutorial of docs/access.md line by line: two teams on one cluster
// see and change only their own names. The acts of an operator are on record. An
// administrator who has lost access gets it back through the admin socket.
func TestTwoTeams(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	c := startMachines(t, " --client-cert optional --audit-log "+auditLog)
	// A reader has started the servers long before.
	for end := time.Now().Add(testTimeout); ; {
		out, err := c.shell("conclave upgrade status --servers unix:/var/lib/conclave/admin.sock").CombinedOutput()
		if err == nil && strings.HasPrefix(string(out), fmt.Sprintf("level %d\n", version.Max)) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the level does not rise: %v\n%s", err, out)
		}
	}
	var settings string
	steps := tutorial.FindAllStringSubmatch(string(page), -1)
	commands := 0
	for _, step := range steps {
		var said, last string
		for command := range strings.Lines(step[1]) {
			if strings.HasPrefix(command, "export ") || strings.HasPrefix(command, "unset ") {
				settings += command
				continue
			}
			commands++
			last = command
			out, err := c.shell(settings + command).CombinedOutput()
			// A server reads by the rules that it knows, which may lag: one that does not know of a role
			// yet is asked again.
			for end := time.Now().Add(testTimeout); lags(string(out), err) && !anyIn(string(out), step[2]) && time.Now().Before(end); {
				out, err = c.shell(settings + command).CombinedOutput()
			}
			said += string(out)
			// A command that fails says why, and the document shows that.
			if err != nil && !anyIn(string(out), step[2]) {
				t.Errorf("%s%v\n%s", command, err, out)
			}
			// A team does not see the names of the other one.
			if strings.Contains(command, "conclave locks") && strings.Contains(string(out), "blue/b") {
				t.Errorf("%sshows the lock of the other team:\n%s", command, out)
			}
		}
		// Whom a token proves, each server says by the rules that it knows, which may lag.
		for end := time.Now().Add(testTimeout); !allIn(said, step[2]) && strings.Contains(last, "access whoami") && time.Now().Before(end); {
			out, _ := c.shell(settings + last).CombinedOutput() // it may fail: that is what is waited for
			said += string(out)
		}
		if !allIn(said, step[2]) {
			t.Errorf("%sprints\n%s\nand docs/access.md shows\n%s", step[1], said, step[2])
		}
	}
	if blocks := selftest.Blocks(string(page), "sh"); len(blocks) != len(steps) || commands < 20 {
		t.Errorf("%d blocks of commands were run, with %d commands; the document has %d", len(steps), commands, len(blocks))
	}
}

// lags reports whether a command failed because a server did not know yet that its caller may read the
// rules.
func lags(out string, err error) bool {
	return err != nil && strings.Contains(out, " may not read the rules: ")
}

// allIn reports whether an output contains all lines that the document shows.
func allIn(out, shown string) bool {
	for want := range strings.Lines(shown) {
		if !contains(out, want) {
			return false
		}
	}
	return true
}

// anyIn reports whether an output contains at least one line that the document shows.
func anyIn(out, shown string) bool {
	for want := range strings.Lines(shown) {
		if contains(out, want) {
			return true
		}
	}
	return false
}

// contains reports whether a line of the output has all words of a line of a document, in
// order.
func contains(out, want string) bool {
	for line := range strings.Lines(out) {
		if strings.Contains(strings.Join(strings.Fields(line), " "), strings.Join(strings.Fields(want), " ")) {
			return true
		}
	}
	return false
}

// TestRulesNeedTheirLevel: if a server prevents the level that has rules, init names it.
func TestRulesNeedTheirLevel(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	client, err := conclave.Dial(ctx, conclave.Config{Servers: c.Addresses()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if err := c.Raise(ctx, client, version.Access); err != nil {
		t.Fatal(err)
	}
	for level := uint32(version.Max - 1); level >= version.Access-1; level-- { // one at a time
		if _, err := admin.New(client).LowerLevel(ctx, level); err != nil {
			t.Fatal(err)
		}
	}
	init := func() string {
		t.Helper()
		out, err := exec.CommandContext(ctx, binary, "access", "init", "--admin", "cert:alice", "--servers", strings.Join(c.Addresses(), ",")).CombinedOutput()
		if err == nil {
			t.Errorf("init succeeds below its level:\n%s", out)
		}
		return string(out)
	}
	if out, want := init(), "conclave: level 3: rules of access need level 4; raise it with `conclave upgrade finish`\n"; out != want {
		t.Errorf("init says %q, want %q", out, want)
	}
	if err := c.Kill(3); err != nil {
		t.Fatal(err)
	}
	for out := ""; !strings.HasPrefix(out, "conclave: level 3: rules of access need level 4: ") || !strings.Contains(out, "server 3"); out = init() {
		if ctx.Err() != nil {
			t.Fatalf("init says %q, and does not name server 3", out)
		}
	}
}

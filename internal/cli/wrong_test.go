package cli

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server"
)

var update = flag.Bool("update", false, "rewrite the table of wrong uses")

// TestWrongUses runs the wrong uses of all commands in testdata/wrong/uses.txtar. Each prints
// nothing on standard output, and exactly one line on standard error. The archive is a table
// of command lines, each with its exit status and its line, and then the files that they
// name. After a change of messages: go test ./internal/cli -run TestWrongUses -update
func TestWrongUses(t *testing.T) {
	path, err := filepath.Abs("testdata/wrong/uses.txtar")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := txtar.Write(archive, dir); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	t.Setenv("CONCLAVE_SERVERS", "127.0.0.1:1") // nobody listens on port 1
	if status, _, said := inProcess("cert", "authority", "certs"); status != 0 {
		t.Fatal(said)
	}
	names := strings.NewReplacer(oneServer(t)...)
	table, uses := strings.Builder{}, 0
	for _, line := range strings.Split(strings.TrimSuffix(string(archive.Comment), "\n"), "\n") {
		command, is := strings.CutPrefix(line, "$ ")
		if !is {
			if line == "" || strings.HasPrefix(line, "#") {
				fmt.Fprintln(&table, line)
			}
			continue
		}
		uses++
		status, said := misused(t, strings.Fields(names.Replace(command)))
		fmt.Fprintf(&table, "%s\n%d %s", line, status, said)
	}
	if uses < 80 {
		t.Errorf("%d wrong uses, want at least 80", uses)
	}
	if *update {
		archive.Comment = []byte(table.String())
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, want := strings.Split(table.String(), "\n"), strings.Split(string(archive.Comment), "\n")
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("line %d:\n got %s\nwant %s", i+1, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
}

// quoted replaces what a word in quotes has in place of white space.
var quoted = strings.NewReplacer("_", " ", `\t`, "\t")

// misused runs a command line, which may begin with environment variables. It returns the
// exit status and the output.
func misused(t *testing.T, words []string) (status int, said string) {
	for words[0] != "conclave" {
		name, value, _ := strings.Cut(words[0], "=")
		before := os.Getenv(name)
		os.Setenv(name, value)
		defer os.Setenv(name, before)
		words = words[1:]
	}
	for i, word := range words {
		if inside, is := strings.CutPrefix(word, "'"); is {
			words[i] = quoted.Replace(strings.TrimSuffix(inside, "'"))
		}
	}
	status, printed, said := inProcess(words[1:]...)
	if printed != "" || strings.Count(said, "\n") != 1 || status == 0 {
		t.Errorf("%q: status %d, %q, %q", words, status, printed, said)
	}
	return status, unstable.ReplaceAllString(said, "...")
}

// unstable is what differs from run to run: ports, dates and identities.
var unstable = regexp.MustCompile(`20\d\d-\d\d-\d\d|127\.0\.0\.1:\d{5}|\b[0-9a-f]{16}\b`)

// oneServer runs a cluster of one server. For a Replacer, it returns the words of command
// lines that the table cannot contain: the server's addresses, its admin socket, and a name that is
// too long.
func oneServer(t *testing.T) []string {
	short, err := os.MkdirTemp("", "s") // the path of a socket may have about 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	socket := filepath.Join(short, "admin")
	cfg := config.Server{Data: filepath.Join(t.TempDir(), "data"), Listen: "127.0.0.1:0", PeerListen: "127.0.0.1:0", AdminSocket: socket}
	s, err := server.Start(cfg.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return []string{"$SERVER", s.Addr().String(), "$PEER", s.PeerAddr().String(), "$SOCKET", "unix:" + socket, "$LONG", strings.Repeat("x", 513)}
}

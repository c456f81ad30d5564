package duties

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unlisted is a repository with the list of algorithms and the changelog alone.
func unlisted(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "algorithm"), 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, listFile))
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{listFile: string(text), changesFile: changes} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const changes = "# Changelog\n\n## Unreleased\n\n### Features\n\nLaboratory:\n\n- Old.\n\n## 1.0\n"

// A new algorithm of each family is listed behind the others of its family, and its files are Go.
func TestBegin(t *testing.T) {
	for _, f := range families {
		dir := unlisted(t)
		files, err := Begin(dir, "next-one", f.name)
		if err != nil {
			t.Fatal(err)
		}
		folder := "algorithm/" + f.name + "/nextone"
		if want := []string{folder + "/nextone.go", folder + "/nextone_test.go", folder + "/testdata/golden", listFile, changesFile}; !slices.Equal(files, want) {
			t.Errorf("%s: wrote %q, want %q", f.name, files, want)
		}
		for _, file := range files {
			if strings.HasSuffix(file, ".go") {
				if _, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, file), nil, 0); err != nil {
					t.Error(err)
				}
			}
		}
		left, err := lackingOf(dir, folder)
		if err != nil || len(left) != 1 {
			t.Errorf("%s: left of the draft: %q, %v", f.name, left, err)
		}
		if _, err := Begin(dir, "next-one", f.name); err == nil || !strings.Contains(err.Error(), folder+": exists") {
			t.Errorf("%s: a second draft: %v", f.name, err)
		}
	}
}

// The list keeps its order, and a package whose name is taken gets another one.
func TestBeginLists(t *testing.T) {
	const text = `package algorithm

import (
	clocklamport "github.com/conclave-io/conclave/algorithm/clock/lamport"
	"github.com/conclave-io/conclave/algorithm/election/bully"
	"github.com/conclave-io/conclave/algorithm/mutex/lamport"
	"github.com/conclave-io/conclave/algorithm/mutex/lease"
	"github.com/conclave-io/conclave/process"
)

var mutex = []*process.Spec{
	lamport.Spec,
	lease.Spec,
	lease.Redlock,
}

var election = with(
	served.Elections,
)

var clock = []*process.Spec{
	clocklamport.Spec,
}

var others = []*process.Spec{
	globalstate.Spec,
}
`
	for _, c := range []struct{ family, pkg, imported, listed string }{
		{"mutex", "next", "mutex/lease\"\n\t\"github.com/conclave-io/conclave/algorithm/mutex/next\"\n", "\tlease.Redlock,\n\tnext.Spec,\n}\n"},
		{"election", "lamport", "\telectionlamport \"github.com/conclave-io/conclave/algorithm/election/lamport\"\n", "\tserved.Elections,\n\telectionlamport.Spec,\n)\n"},
		{"clock", "next", "\t\"github.com/conclave-io/conclave/algorithm/clock/next\"\n", "\tclocklamport.Spec,\n\tnext.Spec,\n}\n"},
	} {
		got, err := list(text, c.family, c.pkg)
		if err != nil || !strings.Contains(got, c.imported) || !strings.Contains(got, c.listed) {
			t.Errorf("%s %s: %v\n%s", c.family, c.pkg, err, got)
		}
	}
	if _, err := list(text, "multicast", "next"); err == nil {
		t.Error("listed behind a family that has no algorithm")
	}
}

// The changelog names a new algorithm below what is not released, and nowhere else.
func TestBeginTells(t *testing.T) {
	const line = "- `next-one`, a new algorithm of the family mutex: [docs/algorithms/next-one.md](docs/algorithms/next-one.md).\n"
	got, err := tell(changes, "next-one", "mutex")
	if want := strings.Replace(changes, "- Old", line+"- Old", 1); err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
	if _, err := tell(strings.Replace(changes, "## Unreleased", "## 1.1", 1), "next-one", "mutex"); err == nil {
		t.Error("a changelog without anything unreleased is accepted")
	}
	if _, err := tell("## Unreleased\n\n## 1.1\n\nLaboratory:\n\n- Old.\n", "next-one", "mutex"); err == nil {
		t.Error("a line is put into a release")
	}
}

func TestBeginRefuses(t *testing.T) {
	for _, c := range []struct{ name, family, want string }{
		{"Next", "mutex", `name: "Next": use lower case words joined by hyphens`},
		{"raymond", "mutex", `name: "raymond": in the list already; run make algorithm NAME=raymond without FAMILY`},
		{"2pc", "transaction", `name: "2pc": must begin with a letter, as its Go package does`},
		{"go-to", "mutex", `name: "go-to": "goto" is a keyword of Go, so no package can have that name; choose another`},
		{"next", "mutx", `family: "mutx": must be one of mutex, election, agreement, transaction, detector, clock, multicast`},
	} {
		if _, err := Begin(unlisted(t), c.name, c.family); err == nil || err.Error() != c.want {
			t.Errorf("%s %s: %v, want %s", c.name, c.family, err, c.want)
		}
	}
}

// A name that differs from a listed one in its hyphens has the same folder.
func TestBeginRefusesFolder(t *testing.T) {
	dir := unlisted(t)
	if err := os.MkdirAll(filepath.Join(dir, "algorithm/mutex/suzukikasami"), 0o755); err != nil {
		t.Fatal(err)
	}
	const want = `name: "suzuki-kasa-mi": algorithm/mutex/suzukikasami is the folder of suzuki-kasami; choose another name, or run make algorithm NAME=suzuki-kasami`
	if _, err := Begin(dir, "suzuki-kasa-mi", "mutex"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

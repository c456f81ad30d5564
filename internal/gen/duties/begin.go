package duties

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"go/format"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/process"
)

// family is what the draft of a package knows of a family.
type family struct {
	name     string   // of the folder
	constant string   // of package process
	events   []string // of clients
	script   string   // the first commands, behind init
}

// families are those that have a package for each algorithm.
var families = []family{
	{"mutex", "Mutex", []string{"Acquire", "Release"}, "request 2\n----\n\nstep times=2\n----\n\nstate\n----\n"},
	{"election", "Election", []string{"Campaign"}, "campaign 1\n----\n\nuntil 20\n----\n\ncount\n----\n"},
	{"agreement", "Agreement", []string{"Propose"}, "propose 1 2 3 value=1\n----\n\nuntil 20\n----\n\ncount\n----\n"},
	{"transaction", "Transaction", []string{"Propose"}, "propose 1 2 3 value=1\n----\n\nuntil 20\n----\n\ncount\n----\n"},
	{"detector", "Detector", []string{"Fire"}, "until 10\n----\n\nstate\n----\n"},
	{"clock", "ClockSync", []string{"Fire"}, "until 10\n----\n\nstate\n----\n"},
	{"multicast", "Multicast", []string{"Propose"}, "propose 1 value=1\n----\n\nuntil 20\n----\n\ncount\n----\n"},
}

//go:embed begin.txt
var beginText string

var beginFile = template.Must(template.New("").Parse(beginText))

var wellNamed = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Begin drafts the package of a new algorithm in the repository at root, with its tests and
// a script, lists it, and puts a line into the changelog. It returns the files that it wrote.
func Begin(root, name, familyName string) ([]string, error) {
	f, err := begins(name, familyName)
	if err != nil {
		return nil, err
	}
	pkg := strings.ReplaceAll(name, "-", "")
	folder := path.Join("algorithm", f.name, pkg)
	if _, err := os.Stat(filepath.Join(root, folder)); !errors.Is(err, fs.ErrNotExist) {
		if listed := owner(pkg, f.name); listed != "" {
			return nil, errors.Join(err, fmt.Errorf("name: %q: %s is the folder of %s; choose another name, or run make algorithm NAME=%s", name, folder, listed, listed))
		}
		return nil, errors.Join(err, fmt.Errorf("%s: exists; write it, then run make algorithm NAME=%s", folder, name))
	}
	var code bytes.Buffer
	if err := beginFile.Execute(&code, map[string]any{"Package": pkg, "Name": name, "Family": f.constant, "Events": f.events}); err != nil {
		return nil, err
	}
	before, err := os.ReadFile(filepath.Join(root, listFile))
	if err != nil {
		return nil, err
	}
	listed, err := list(string(before), f.name, pkg)
	if err != nil {
		return nil, err
	}
	if before, err = os.ReadFile(filepath.Join(root, changesFile)); err != nil {
		return nil, err
	}
	told, err := tell(string(before), name, f.name)
	if err != nil {
		return nil, err
	}
	written := []string{path.Join(folder, pkg+".go"), path.Join(folder, pkg+"_test.go"), path.Join(folder, "testdata", "golden"), listFile, changesFile}
	for i, text := range []string{code.String(), fmt.Sprintf(beginTest, pkg), "init n=3\n----\n\n" + f.script, listed, told} {
		file := filepath.Join(root, filepath.FromSlash(written[i]))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	return written, nil
}

// begins returns the family of a new algorithm, or what is wrong with its name or family.
func begins(name, familyName string) (*family, error) {
	if !wellNamed.MatchString(name) {
		return nil, fmt.Errorf("name: %q: use lower case words joined by hyphens", name)
	}
	pkg := strings.ReplaceAll(name, "-", "")
	if pkg[0] <= '9' {
		return nil, fmt.Errorf("name: %q: must begin with a letter, as its Go package does", name)
	}
	if token.IsKeyword(pkg) {
		return nil, fmt.Errorf("name: %q: %q is a keyword of Go, so no package can have that name; choose another", name, pkg)
	}
	if algorithm.Find(name) != nil {
		return nil, fmt.Errorf("name: %q: in the list already; run make algorithm NAME=%s without FAMILY", name, name)
	}
	var names []string
	for i := range families {
		if families[i].name == familyName {
			return &families[i], nil
		}
		names = append(names, families[i].name)
	}
	return nil, fmt.Errorf("family: %q: must be one of %s", familyName, strings.Join(names, ", "))
}

// owner returns the listed algorithm of a family whose package has the name, or "".
func owner(pkg, familyName string) string {
	for _, s := range algorithm.All {
		if s.Family.String() == familyName && strings.ReplaceAll(s.Name, "-", "") == pkg {
			return s.Name
		}
	}
	return ""
}

const beginTest = `package %s

import (
	"testing"

	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }
`

const listFile = "algorithm/algorithm.go"

// list returns the text of the list of algorithms with one more at the end of those of its
// family.
func list(text, familyName, pkg string) (string, error) {
	const module = "github.com/conclave-io/conclave/"
	const contract = "\t\"" + module + "process\"\n"
	family := regexp.MustCompile(`(?s)\nvar ` + familyName + ` = .*?\n[)}]\n`).FindStringIndex(text)
	if family == nil || !strings.Contains(text, contract) {
		return "", fmt.Errorf("%s: no list %s, or no import of %sprocess", listFile, familyName, module)
	}
	as := ""
	if strings.Contains(text, "/"+pkg+"\"\n") {
		as = familyName + pkg
	}
	end := family[1] - len("\n}\n")
	text = text[:end] + "\n\t" + cmp.Or(as, pkg) + ".Spec," + text[end:]
	text = strings.Replace(text, contract, fmt.Sprintf("\t%s \"%salgorithm/%s/%s\"\n%s", as, module, familyName, pkg, contract), 1)
	out, err := format.Source([]byte(text))
	return string(out), err
}

const changesFile = "CHANGELOG.md"

// tell returns the text of the changelog with a line about a new algorithm.
func tell(text, name, familyName string) (string, error) {
	const unreleased, laboratory = "## Unreleased\n", "\nLaboratory:\n\n"
	_, next, found := strings.Cut(text, unreleased)
	if next, _, _ = strings.Cut(next, "\n## "); !found || !strings.Contains(next, laboratory) {
		return "", fmt.Errorf("%s: no list \"Laboratory:\" below \"## Unreleased\"; begin one", changesFile)
	}
	at := strings.Index(text, unreleased)
	at += strings.Index(text[at:], laboratory) + len(laboratory)
	line := fmt.Sprintf("- `%s`, a new algorithm of the family %s: [docs/algorithms/%[1]s.md](docs/algorithms/%[1]s.md).\n", name, familyName)
	return text[:at] + line + text[at:], nil
}

// Draft writes a small scenario of an algorithm if it has none, and returns its path. The
// scenario is for the picture on the page.
func Draft(root string, spec *process.Spec) (string, error) {
	name := path.Join("lab/scenarios", spec.Family.String(), spec.Name+".yaml")
	file := filepath.Join(root, filepath.FromSlash(name))
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	text := draft(spec)
	if text == "" {
		return "", nil
	}
	s, err := scenario.Parse(name, []byte(text))
	if err != nil {
		return "", err
	}
	outcome, err := s.Run()
	if err != nil {
		return "", err
	}
	if !outcome.Met() {
		return "", fmt.Errorf("%s: the draft does not come out as it says: %s", name, strings.Join(outcome.Unmet, "; "))
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	return name, os.WriteFile(file, []byte(text), 0o644)
}

// draft is the text of a scenario, or nothing for families whose scenarios differ too much.
func draft(spec *process.Spec) string {
	head := fmt.Sprintf("algorithm: %s\nabout: %%s\nn: 3\n", spec.Name)
	if spec.Needs.Topology == process.Tree {
		head += "topology: {tree: line}\n"
	}
	switch spec.Family {
	case process.Mutex:
		return fmt.Sprintf(head, "3 asks first, 2 and 1 one after the other; each enters once") +
			"workload:\n  commands:\n    - {at: 1, acquire: 3}\n    - {at: 2, acquire: 2}\n    - {at: 3, acquire: 1}\nlimit: {entries: 3}\nexpect: {entries: 3}\n"
	case process.Election:
		return fmt.Sprintf(head, "1 starts an election of three, and 3 wins") +
			"workload:\n  commands:\n    - {at: 1, campaign: 1}\nexpect: {leader: 3}\n"
	}
	return ""
}

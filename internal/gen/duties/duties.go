// Package duties says what an algorithm of this repository lacks beside its code: tests, a
// scenario, a page with prose, and its lines in the tables that are measured and searched.
// "make algorithm NAME=x" writes what can be generated.
package duties

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/internal/gen/pages"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/lab/check/audit"
	"github.com/conclave-io/conclave/lab/measure"
	"github.com/conclave-io/conclave/process"
)

// table is a page that has lines of each algorithm of a list.
type table struct {
	file string
	of   func(all []*process.Spec) []*process.Spec
	line string // how a line of an algorithm begins, with its name for %s
}

var tables = []table{
	{"docs/comparison.md", measure.Mutex, "| %s |"},
	{"docs/elections.md", measure.Elections, "| %s |"},
	{"docs/assumptions.md", audit.Audited, "| [%s]("},
	{"docs/verification.md", checked, "| %s |"},
}

// checked returns the algorithms that the model checker takes.
func checked(all []*process.Spec) []*process.Spec {
	return slices.DeleteFunc(slices.Clone(all), func(s *process.Spec) bool {
		c := check.Config{Spec: s, Process: process.Config{N: 3}}
		return c.Validate() != nil
	})
}

// Missing returns a line for each thing that algorithms of the repository at root lack: all
// algorithms, or those that are named. Each says what to do.
func Missing(root string, names ...string) ([]string, error) {
	specs := algorithm.All
	if len(names) > 0 {
		specs = slices.DeleteFunc(slices.Clone(specs), func(s *process.Spec) bool { return !slices.Contains(names, s.Name) })
	}
	missing, err := untested(root, specs)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		lacking, err := t.missing(root, specs)
		if err != nil {
			return nil, err
		}
		missing = append(missing, lacking...)
	}
	written, err := unwritten(root, specs)
	return append(missing, written...), err
}

// missing returns the algorithms that the table has no line of.
func (t *table) missing(root string, specs []*process.Spec) (missing []string, err error) {
	page, err := os.ReadFile(filepath.Join(root, t.file))
	if err != nil {
		return nil, err
	}
	for _, s := range t.of(specs) {
		if !strings.Contains(string(page), "\n"+fmt.Sprintf(t.line, s.Name)) {
			missing = append(missing, fmt.Sprintf("%s: %s: no line; run make algorithm NAME=%s", s.Name, t.file, s.Name))
		}
	}
	return missing, nil
}

// unwritten returns what the pages of the algorithms lack.
func unwritten(root string, specs []*process.Spec) ([]string, error) {
	wrong, err := pages.Check(root, algorithm.All)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, line := range wrong {
		for _, s := range specs {
			if strings.HasPrefix(line, path.Join(pages.Folder, s.Name)+".") || strings.HasPrefix(line, pages.Folder+": no page for "+s.Name+";") {
				missing = append(missing, s.Name+": "+strings.Replace(line, "run make pages", "run make algorithm NAME="+s.Name, 1))
			}
		}
	}
	return missing, nil
}

// testLines are the lines that the tests of every algorithm have.
var testLines = []string{"processtest.Conform(t, ", "processtest.Script(t, "}

// untested returns what the packages of the algorithms lack.
func untested(root string, specs []*process.Spec) (missing []string, err error) {
	code, err := pages.Code(root)
	if err != nil {
		return nil, err
	}
	for _, s := range specs {
		if s.Layers != nil {
			continue // tested in the packages of algorithm/stack
		}
		folder := code[s.Name]
		if folder == "" {
			missing = append(missing, fmt.Sprintf("%s: no line %q of its Spec in algorithm/; write one on a line of its own", s.Name, fmt.Sprintf("Name: %q,", s.Name)))
			continue
		}
		if want := path.Join("algorithm", s.Family.String()); !strings.HasPrefix(folder, want) && !strings.HasPrefix(folder, "algorithm/broken") {
			missing = append(missing, fmt.Sprintf("%s: %s: not in %s, the folder of its family", s.Name, folder, want))
		}
		lacking, err := lackingOf(root, folder)
		if err != nil {
			return nil, err
		}
		for _, line := range lacking {
			missing = append(missing, s.Name+": "+line)
		}
	}
	return missing, nil
}

// draftMark marks what a draft leaves to its writer.
const draftMark = "WRITE:"

// lackingOf returns what the tests of a package lack, and the files in which something of the draft
// is left.
func lackingOf(root, folder string) (missing []string, err error) {
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		return nil, err
	}
	var tests string
	var drafts []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(file, "_test.go") {
			tests += string(content)
		}
		if n := strings.Count(string(content), draftMark); n > 0 {
			drafts = append(drafts, fmt.Sprintf("%s: %q is left in %d places; write what it asks for", path.Join(folder, filepath.Base(file)), draftMark, n))
		}
	}
	for _, line := range testLines {
		if !strings.Contains(tests, line) {
			missing = append(missing, fmt.Sprintf("%s: no test calls %sSpec...); write one", folder, line))
		}
	}
	scripts := 0
	err = filepath.WalkDir(filepath.Join(root, folder, "testdata"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			scripts++
		}
		return nil
	})
	if scripts == 0 {
		missing = append(missing, fmt.Sprintf("%s/testdata: no scripts; write one, then run go test ./%s -rewrite", folder, folder))
	}
	return append(missing, drafts...), err
}

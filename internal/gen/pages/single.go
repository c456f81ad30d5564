package pages

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/algorithm/broken"
	"github.com/conclave-io/conclave/algorithm/served"
	"github.com/conclave-io/conclave/internal/gen/splice"
	"github.com/conclave-io/conclave/lab/measure"
	"github.com/conclave-io/conclave/process"
)

// single is a page of its own, with blocks that are made from what the programs know.
type single struct {
	file   string
	blocks map[string]func() string
}

const (
	brokenPage     = "docs/broken.md"     // the variants with a mistake
	guardsPage     = "docs/guards.md"     // which algorithm to choose for which lock
	referencesPage = "docs/references.md" // the lecture documents, and all papers
)

var singles = []single{
	{brokenPage, map[string]func() string{
		"mutex":        func() string { return mistakes(process.Mutex) },
		"elections":    func() string { return mistakes(process.Election) },
		"agreement":    func() string { return mistakes(process.Agreement) },
		"transactions": func() string { return mistakes(process.Transaction) },
		"deadlocks":    func() string { return mistakes(process.Deadlock) },
	}},
	{guardsPage, map[string]func() string{"costs": guardCosts}},
	{referencesPage, map[string]func() string{"papers": papers}},
}

// CheckSingles returns a line for each such page under the root of a repository that is
// not what the Specs say.
func CheckSingles(root string) (wrong []string, err error) {
	for _, s := range singles {
		written, wanted, err := s.fill(root)
		if err != nil {
			return nil, err
		}
		if written != wanted {
			wrong = append(wrong, s.file+": not what the Specs say; run make pages")
		}
	}
	return wrong, nil
}

// WriteSingles updates these pages.
func WriteSingles(root string) error {
	for _, s := range singles {
		written, wanted, err := s.fill(root)
		if err != nil {
			return err
		}
		if written == wanted {
			continue
		}
		if err := os.WriteFile(s.at(root), []byte(wanted), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (s *single) at(root string) string { return filepath.Join(root, filepath.FromSlash(s.file)) }

// fill returns the page as it is and as it should be.
func (s *single) fill(root string) (written, wanted string, err error) {
	content, err := os.ReadFile(s.at(root))
	if err != nil {
		return "", "", err
	}
	wanted, err = splice.Fill(string(content), func(name, _ string) (string, error) {
		made := s.blocks[name]
		if made == nil {
			return "", fmt.Errorf("%s: generated block %q: unknown", s.file, name)
		}
		return made(), nil
	})
	return string(content), wanted, err
}

// mistakes is the table of the variants of one family.
func mistakes(family process.Family) string {
	var rows [][]string
	for i := range broken.Variants {
		v := &broken.Variants[i]
		if v.Of.Family != family {
			continue
		}
		rows = append(rows, []string{
			fmt.Sprintf("[%s](algorithms/%s.md)", v.Of.Name, v.Of.Name),
			"`" + strings.TrimPrefix(v.Name, v.Of.Name+"-") + "`: " + escaped(v.Mistake),
			escaped(v.Tempting),
			fmt.Sprintf("%s (%s)", escaped(v.Wrong), escaped(v.Breaks.String())),
			"`" + v.Command() + "`",
		})
	}
	return table([]string{"algorithm", "mistake", "why it is tempting", "what happens", "to see it"}, rows, "")
}

// guardCosts is the table of what the algorithms cost that servers run.
func guardCosts() string {
	var rows [][]string
	for _, s := range served.Locks {
		for _, mode := range [...]string{"", "keep"} {
			name := fmt.Sprintf("[%s](algorithms/%s.md)", s.Name, s.Name)
			if mode != "" {
				if s.Name != "ricart-agrawala" {
					continue
				}
				name += ", `mode=" + mode + "`"
			}
			f := measure.Formulas(s, mode)
			for i := range f {
				f[i] = escaped(f[i])
			}
			rows = append(rows, []string{name, strings.Join(f[:2], "; "), f[2], f[3]})
		}
	}
	return table([]string{"guard", "messages for an entry: idle; all wait", "time until the entry, idle", "hand-off"}, rows, "")
}

// papers lists every paper that a Spec names, with the algorithms that come from it.
func papers() string {
	from := make(map[string][]string)
	for _, spec := range algorithm.All {
		for paper := range strings.SplitSeq(spec.Paper, "; ") {
			if strings.Contains(paper, ":") { // not "folklore"
				paper = strings.TrimPrefix(paper, "after ")
				from[paper] = append(from[paper], fmt.Sprintf("[%s](algorithms/%s.md)", spec.Name, spec.Name))
			}
		}
	}
	var list []string
	for paper, names := range from {
		list = append(list, fmt.Sprintf("- %s. Used by %s.", linked(paper), strings.Join(names, ", ")))
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Compare(a, b) })
	return strings.Join(list, "\n")
}

// linked returns a paper with its DOI as a link.
func linked(paper string) string {
	text, doi, found := strings.Cut(paper, ", doi:")
	if !found {
		return escaped(paper)
	}
	return fmt.Sprintf("%s, [doi:%s](https://doi.org/%s)", escaped(text), doi, doi)
}

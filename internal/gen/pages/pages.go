// Package pages keeps docs/algorithms: a page for each algorithm, with a picture
// of a run, and an index.
//
// A page is one Markdown file in which people and this package both write. What
// stands between a line "<!-- generated: NAME -->" and the next "<!-- end -->" is
// made from the Spec, and so is the title; everything else is written by hand and
// is never touched. The block "run" names the scenario that is drawn beside the
// page, "<!-- generated: run lab/scenarios/mutex/lamport.yaml -->", and who edits the
// page may name another one. An algorithm without a page gets one in which only
// the prose is missing.
//
// Check says where pages and Specs have drifted apart, and is a test; Write mends
// what can be mended. They share everything, so a page that was just written
// passes. Write is called by a command of its own, in cmd, because it is for
// those who change this repository: conclave, which others install, has no use
// for it.
package pages

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/internal/gen/splice"
	"github.com/conclave-io/conclave/lab/describe"
	"github.com/conclave-io/conclave/process"
)

// Folder is where the pages are, from the root of the repository.
const Folder = "docs/algorithms"

const indexPage = Folder + "/README.md"

// file is what should be in the folder.
type file struct {
	path    string
	content []byte
}

// site is everything that should be, and what is missing that only people can
// write.
type site struct {
	root  string
	specs []*process.Spec
	paged []*process.Spec // those that have a page
	runs  *runs
	files []file
	wants []string
}

// Check compares the pages under the root of a repository with the Specs. It
// returns one line for each thing that is wrong, which says what to do.
func Check(root string, specs []*process.Spec) ([]string, error) {
	s, err := build(root, specs)
	if err != nil {
		return nil, err
	}
	var wrong []string
	for _, f := range s.files {
		written, err := os.ReadFile(s.at(f.path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err != nil || !bytes.Equal(written, f.content) {
			wrong = append(wrong, f.path+" is not what the Specs and scenarios say; run make pages")
		}
	}
	return append(wrong, s.wants...), nil
}

// Write makes the pages. If names are given, only these algorithms get a page that
// have none. It returns what is left for people to do, a line each.
func Write(root string, specs []*process.Spec, names ...string) ([]string, error) {
	if err := begin(root, specs, names); err != nil {
		return nil, err
	}
	s, err := build(root, specs)
	if err != nil {
		return nil, err
	}
	for _, f := range s.files {
		if err := os.WriteFile(s.at(f.path), f.content, 0o644); err != nil {
			return nil, err
		}
	}
	return s.wants, nil
}

// begin makes the pages that are missing, with nothing in them.
func begin(root string, specs []*process.Spec, names []string) error {
	runs, err := findRuns(root)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(root, Folder), 0o755); err != nil {
		return err
	}
	for _, spec := range specs {
		if len(names) > 0 && !slices.Contains(names, spec.Name) {
			continue
		}
		if err := create(filepath.Join(root, pageOf(spec)), newPage(runs.usual(spec))); err != nil {
			return err
		}
	}
	return create(filepath.Join(root, indexPage), newIndex)
}

// create writes a file if it is not there.
func create(name, content string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}

func pageOf(spec *process.Spec) string { return path.Join(Folder, spec.Name+".md") }

// pictureOf returns the path of the drawing beside a page.
func pictureOf(spec *process.Spec) string { return path.Join(Folder, spec.Name+".svg") }

func (s *site) at(name string) string { return filepath.Join(s.root, filepath.FromSlash(name)) }

func (s *site) want(format string, args ...any) {
	s.wants = append(s.wants, fmt.Sprintf(format, args...))
}

// has reports whether an algorithm has a page.
func (s *site) has(spec *process.Spec) bool { return slices.Contains(s.paged, spec) }

func build(root string, specs []*process.Spec) (*site, error) {
	s := &site{root: root, specs: specs}
	var err error
	if s.runs, err = findRuns(root); err != nil {
		return nil, err
	}
	if err := s.findPages(); err != nil {
		return nil, err
	}
	for _, spec := range s.paged {
		if err := s.page(spec); err != nil {
			return nil, err
		}
	}
	if err := s.index(); err != nil {
		return nil, err
	}
	return s, s.strangers()
}

func (s *site) findPages() error {
	for _, spec := range s.specs {
		_, err := os.Stat(s.at(pageOf(spec)))
		switch {
		case err == nil:
			s.paged = append(s.paged, spec)
		case errors.Is(err, fs.ErrNotExist):
			s.want("docs/algorithms: no page for %s; run make pages and write its prose", spec.Name)
		default:
			return err
		}
	}
	return nil
}

// page adds the page of an algorithm and its picture.
func (s *site) page(spec *process.Spec) error {
	name := pageOf(spec)
	written, err := os.ReadFile(s.at(name))
	if err != nil {
		return err
	}
	content, err := s.filled(string(written), spec)
	if err != nil {
		s.want("%s: %v", name, err)
		return nil
	}
	s.files = append(s.files, file{name, []byte(content)})
	for _, fault := range faults(content) {
		s.want("%s: %s", name, fault)
	}
	return nil
}

// filled returns the page with its title and all its blocks generated again.
func (s *site) filled(text string, spec *process.Spec) (string, error) {
	_, rest, ok := strings.Cut(text, "\n")
	if !ok || !strings.HasPrefix(text, "# ") {
		return "", fmt.Errorf(`it does not begin with a title, a line "# %s"`, spec.Title)
	}
	rest, err := splice.Fill(rest, func(name, argument string) (string, error) {
		if name == "run" {
			return s.run(spec, argument), nil
		}
		if write, ok := blocks[name]; ok && argument == "" {
			return write(s, spec), nil
		}
		return "", fmt.Errorf("there is no generated block %q", strings.TrimSpace(name+" "+argument))
	})
	return "# " + spec.Title + "\n" + rest, err
}

// strangers finds what is in the folder and belongs to no algorithm.
func (s *site) strangers() error {
	entries, err := os.ReadDir(s.at(Folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := path.Join(Folder, entry.Name())
		base := strings.TrimSuffix(entry.Name(), path.Ext(name))
		known := slices.ContainsFunc(s.specs, func(spec *process.Spec) bool { return spec.Name == base })
		if ext := path.Ext(name); name != indexPage && (!known || ext != ".md" && ext != ".svg") {
			s.want("%s belongs to no algorithm; remove it", name)
		}
	}
	return nil
}

// newIndex is the index before anything is in it.
const newIndex = "# The algorithms\n\n<!-- generated: index -->\n" + splice.End + "\n"

// index adds the page that leads to all others.
func (s *site) index() error {
	written, err := os.ReadFile(s.at(indexPage))
	if errors.Is(err, fs.ErrNotExist) {
		s.want("%s is not there; run make pages", indexPage)
		return nil
	}
	if err != nil {
		return err
	}
	content, err := splice.Fill(string(written), func(name, argument string) (string, error) {
		if name != "index" || argument != "" {
			return "", fmt.Errorf("there is no generated block %q", name)
		}
		return s.tables(), nil
	})
	if err != nil {
		s.want("%s: %v", indexPage, err)
		return nil
	}
	s.files = append(s.files, file{indexPage, []byte(content)})
	return nil
}

// tables lists the algorithms by family.
func (s *site) tables() string {
	text := ""
	for _, f := range families {
		var rows [][]string
		for _, spec := range s.paged {
			if spec.Family == f.family {
				rows = append(rows, []string{fmt.Sprintf("[%s](%s.md)", spec.Name, spec.Name), escaped(spec.Title), escaped(headline(spec))})
			}
		}
		if len(rows) > 0 {
			text += fmt.Sprintf("## For %s\n\n%s\n\n", f.title, table([]string{"algorithm", "title", "cost"}, rows, ""))
		}
	}
	return text
}

// headline is the one figure by which algorithms of a family are compared: the
// first that the Spec claims.
func headline(spec *process.Spec) string {
	for i := range spec.Claims.Costs {
		metric := spec.Claims.Costs[i].Metric
		if text := describe.Total(spec, metric); text != "" {
			return describe.Metric(metric) + ": " + text
		}
	}
	return ""
}

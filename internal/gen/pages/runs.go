package pages

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// What a picture on a page may be and still be read.
const (
	maxWidth  = 1200
	maxArrows = 60
)

// runs is what the repository has for each algorithm, by its name.
type runs struct {
	root      string
	scenarios map[string][]string // paths of scenarios, sorted
	code      map[string]string   // folder of its package
}

var (
	scenarioOf = regexp.MustCompile(`(?m)^algorithm: *([a-z0-9-]+) *$`)
	specOf     = regexp.MustCompile(`(?m)^(?:\tName: +|var \w+ = \w+\()"([a-z0-9-]+)",`)
)

func findRuns(root string) (*runs, error) {
	r := &runs{root: root, scenarios: map[string][]string{}, code: map[string]string{}}
	err := r.walk("lab/scenarios", ".yaml", scenarioOf, func(name, file string) {
		r.scenarios[name] = append(r.scenarios[name], file)
	})
	if err != nil {
		return nil, err
	}
	return r, r.walk("algorithm", ".go", specOf, func(name, file string) { r.code[name] = path.Dir(file) })
}

// walk shows the algorithms that the files of a folder name, in lexical order.
func (r *runs) walk(folder, ext string, names *regexp.Regexp, show func(name, file string)) error {
	fsys := os.DirFS(r.root)
	return fs.WalkDir(fsys, folder, func(file string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && file == folder {
			return fs.SkipAll
		}
		if err != nil || d.IsDir() || path.Ext(file) != ext || strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(fsys, file)
		if err != nil {
			return err
		}
		for _, match := range names.FindAllSubmatch(text, -1) {
			show(string(match[1]), file)
		}
		return nil
	})
}

// usual returns the scenario that a new page draws: the one named after the
// algorithm, else any about it, else the one that ought to be written.
func (r *runs) usual(spec *process.Spec) string {
	named := path.Join("lab/scenarios", spec.Family.String(), spec.Name+".yaml")
	known := r.scenarios[spec.Name]
	for _, file := range known {
		if file == named || path.Base(file) == spec.Name+".yaml" {
			return file
		}
	}
	if len(known) > 0 {
		return known[0]
	}
	return named
}

// run makes the picture of a page and what is written about it.
func (s *site) run(spec *process.Spec, name string) string {
	svg, err := s.draw(spec, name)
	if err != nil {
		s.want("%s: its run %q %v", pageOf(spec), name, err)
	}
	if svg == nil {
		return "There is no picture."
	}
	s.files = append(s.files, file{pictureOf(spec), svg})
	drawing := path.Base(pictureOf(spec))
	return fmt.Sprintf("![Space-time diagram of a run of %s](%s)\n\n[%s](../../%s), drawn by\n\n```sh\nconclave sim %s --trace svg --out %s\n```",
		spec.Name, drawing, name, name, name, drawing)
}

// draw runs a scenario as "conclave sim FILE --trace svg" does. What it complains
// about continues "its run ...".
func (s *site) draw(spec *process.Spec, name string) ([]byte, error) {
	sc, err := scenario.Load(s.at(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("is not there; write a small scenario, or name another one in the page")
	}
	if err != nil {
		return nil, err
	}
	if cfg := sc.Config(); cfg.Spec.Name != spec.Name {
		return nil, fmt.Errorf("is of %s; name another one in the page", cfg.Spec.Name)
	}
	var svg bytes.Buffer
	outcome, err := sc.Trace("svg", trace.Range{}, &svg)
	if err != nil {
		return nil, err
	}
	if !outcome.Met() {
		return nil, fmt.Errorf("does not come out as it says: %s", strings.Join(outcome.Unmet, "; "))
	}
	return svg.Bytes(), readable(svg.Bytes())
}

var (
	widthOf = regexp.MustCompile(`<svg [^>]*width="(\d+)"`)
	arrowOf = regexp.MustCompile(`<g class="m m\d`)
)

// readable returns an error if a picture is too big for a page.
func readable(svg []byte) error {
	width := 0
	if match := widthOf.FindSubmatch(svg); match != nil {
		width, _ = strconv.Atoi(string(match[1]))
	}
	if arrows := len(arrowOf.FindAll(svg, -1)); width > maxWidth || arrows > maxArrows {
		return fmt.Errorf("makes a picture with %d arrows that is %d wide, which nobody can read (%d and %d are enough); "+
			"give it fewer processes or a shorter run, or name another scenario in the page", arrows, width, maxArrows, maxWidth)
	}
	return nil
}

// Code returns the folder of the package of each algorithm, from the root of the repository.
func Code(root string) (map[string]string, error) {
	r, err := findRuns(root)
	if err != nil {
		return nil, err
	}
	return r.code, nil
}

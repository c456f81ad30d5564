package pages

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/conclave-io/conclave/internal/describe"
	"github.com/conclave-io/conclave/internal/splice"
	"github.com/conclave-io/conclave/process"
)

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

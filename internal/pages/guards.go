package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/measure"
)

// guardsPage tells which algorithm to choose for which lock.
const guardsPage = "docs/guards.md"

// CheckGuards returns a line if the page of guards under the root of a repository has not
// the costs that the Specs say.
func CheckGuards(root string) ([]string, error) {
	written, wanted, err := fillGuards(root)
	if err != nil || written == wanted {
		return nil, err
	}
	return []string{guardsPage + " is not what the Specs say; run make pages"}, nil
}

// WriteGuards mends the page.
func WriteGuards(root string) error {
	written, wanted, err := fillGuards(root)
	if err != nil || written == wanted {
		return err
	}
	return os.WriteFile(filepath.Join(root, filepath.FromSlash(guardsPage)), []byte(wanted), 0o644)
}

// fillGuards returns the page as it is and as it should be.
func fillGuards(root string) (written, wanted string, err error) {
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(guardsPage)))
	if err != nil {
		return "", "", err
	}
	wanted, err = replaceBlocks(string(content), func(b block) (string, error) {
		if b.name != "costs" {
			return "", fmt.Errorf("%s: there is no generated block %q", guardsPage, b.name)
		}
		return guardCosts(), nil
	})
	return string(content), wanted, err
}

// guardCosts is the table of what the algorithms cost that servers run.
func guardCosts() string {
	var rows [][]string
	for _, s := range algorithm.Served {
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

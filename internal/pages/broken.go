package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/conclave-io/conclave/algorithm/broken"
	"github.com/conclave-io/conclave/process"
)

// brokenPage tells of the variants with a mistake, of which there are too many for a
// page each.
const brokenPage = "docs/broken.md"

// CheckBroken returns a line if the page of the broken variants under the root of a
// repository is not what their table says.
func CheckBroken(root string) ([]string, error) {
	written, wanted, err := fillBroken(root)
	if err != nil || written == wanted {
		return nil, err
	}
	return []string{brokenPage + " is not what the table of broken variants says; run make pages"}, nil
}

// WriteBroken mends the page.
func WriteBroken(root string) error {
	written, wanted, err := fillBroken(root)
	if err != nil || written == wanted {
		return err
	}
	return os.WriteFile(filepath.Join(root, filepath.FromSlash(brokenPage)), []byte(wanted), 0o644)
}

// fillBroken returns the page as it is and as it should be.
func fillBroken(root string) (written, wanted string, err error) {
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(brokenPage)))
	if err != nil {
		return "", "", err
	}
	wanted, err = replaceBlocks(string(content), func(b block) (string, error) {
		switch b.name {
		case "mutex":
			return mistakes(process.Mutex), nil
		case "elections":
			return mistakes(process.Election), nil
		case "agreement":
			return mistakes(process.Agreement), nil
		case "transactions":
			return mistakes(process.Transaction), nil
		case "deadlocks":
			return mistakes(process.Deadlock), nil
		}
		return "", fmt.Errorf("%s: there is no generated block %q", brokenPage, b.name)
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
	return table([]string{"algorithm", "mistake", "why it is tempting", "what comes of it", "to see it"}, rows, "")
}

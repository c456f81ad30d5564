package lab

import (
	"bytes"
	"os"
	"testing"

	"github.com/spf13/cobra"
)

// The lab opens a scenario that it reads from standard input as it opens that in a file.
func TestLabReadsStandardInput(t *testing.T) {
	const path = "../../../lab/scenarios/lost-token.yaml"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cmd := new(cobra.Command)
	cmd.SetIn(bytes.NewReader(text))
	piped, err := labPlace(cmd, []string{"-"})
	if err != nil {
		t.Fatal(err)
	}
	if named, err := labPlace(cmd, []string{path}); err != nil || named != piped {
		t.Errorf("%q from standard input, %q from the file, %v", piped, named, err)
	}
}

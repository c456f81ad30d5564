// Command run writes the files that internal/service/ops describes. Its argument is the root of the
// repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/conclave-io/conclave/internal/service/ops"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ops:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("arguments: %q: must be the root of the repository", args)
	}
	for name, content := range ops.Files() {
		if err := os.WriteFile(filepath.Join(args[0], name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Command run writes docs/algorithms, docs/broken.md, docs/guards.md and docs/references.md from the Specs
// and scenarios of this repository, in which it is started. It is what "make pages" runs. Arguments are the
// names of the algorithms that get new pages; without any, all do that have none.
package main

import (
	"fmt"
	"os"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/internal/gen/pages"
)

func main() {
	left, err := pages.Write(".", algorithm.All, os.Args[1:]...)
	if err == nil {
		err = pages.WriteSingles(".")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pages:", err)
		os.Exit(1)
	}
	for _, line := range left {
		fmt.Println(line)
	}
}

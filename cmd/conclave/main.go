// Command conclave is all of Conclave in one binary: the server, and what
// people and scripts use to take locks, to lead and to look.
package main

import (
	"os"

	"github.com/conclave-io/conclave/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args...)) }

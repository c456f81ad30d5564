// Command conclave is the server of Conclave, and the command line for people and scripts: it
// takes locks, campaigns in elections, manages a cluster, and studies algorithms.
//
// conclave --help lists the commands.
package main

import (
	"os"

	"github.com/conclave-io/conclave/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args...)) }

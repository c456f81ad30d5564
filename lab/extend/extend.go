// Package extend is the command line of Conclave with algorithms of another module. A
// program of five lines has every tool for them: it lists, simulates, checks, audits and
// measures them, and shows them in the lab.
//
//	package main
//
//	import "github.com/conclave-io/conclave/lab/extend"
//
//	func main() { extend.Main(Spec) }
//
// An algorithm is a [process.Spec]; package process has the contract. Tests of it call
// package processtest for the contract, package simtest for random schedules, and package
// measure for its costs. The module examples/martin of this repository has one of each.
//
// Servers do not run added algorithms, and the lab that "conclave lab --export" writes for
// browsers does not know them.
package extend

import (
	"fmt"
	"os"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/internal/cli"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/process"
)

// Main adds algorithms to those of Conclave, carries out the command line of the process,
// and ends the process with its exit status. An algorithm that cannot be added is a mistake
// in the program: the error is printed, and the status is 125.
func Main(algorithms ...*process.Spec) {
	if err := algorithm.Add(algorithms...); err != nil {
		fmt.Fprintln(os.Stderr, "conclave:", err)
		os.Exit(ui.StatusError)
	}
	os.Exit(cli.Main(os.Args...))
}

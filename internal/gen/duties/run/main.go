// Command run writes what can be generated of one algorithm, whose name is its argument,
// and prints what is left to write. With -begin it drafts the package of a new algorithm
// instead. "make algorithm" runs it, in the root of the repository. With -audit it audits all
// algorithms; "make audit" runs that.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/internal/gen/duties"
	"github.com/conclave-io/conclave/internal/gen/pages"
	"github.com/conclave-io/conclave/lab/check/audit"
	"github.com/conclave-io/conclave/process"
)

func main() {
	family := flag.String("begin", "", "draft the package of a new algorithm of this family")
	folder := flag.Bool("package", false, "print the package of the algorithm")
	all := flag.Bool("audit", false, "audit all algorithms, and write "+assumptionsPage)
	flag.Parse()
	err := error(nil)
	if *all {
		err = assumptions(algorithm.All)
	} else {
		err = run(flag.Args(), *family, *folder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "duties:", err)
		os.Exit(1)
	}
}

func run(args []string, family string, folder bool) error {
	if len(args) != 1 {
		return fmt.Errorf("%d names: want one; write make algorithm NAME=x", len(args))
	}
	if family != "" {
		return begin(args[0], family)
	}
	spec := algorithm.Find(args[0])
	if spec == nil {
		return fmt.Errorf("%q: not in the list; add its Spec to algorithm/algorithm.go", args[0])
	}
	if folder {
		code, err := pages.Code(".")
		if err == nil && code[spec.Name] == "" {
			err = fmt.Errorf("%q: no package in algorithm/ has the line Name: %q, of its Spec", spec.Name, spec.Name)
		}
		fmt.Println("./" + code[spec.Name])
		return err
	}
	if err := write(spec); err != nil {
		return err
	}
	missing, err := duties.Missing(".", spec.Name)
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		fmt.Println("Nothing is missing.")
	}
	for _, line := range missing {
		fmt.Println(line)
	}
	return nil
}

// begin drafts a package.
func begin(name, family string) error {
	files, err := duties.Begin(".", name, family)
	if err != nil {
		return err
	}
	for _, file := range files {
		fmt.Println(file + ": written")
	}
	fmt.Printf("Write %s, run go test ./%s -rewrite, then make algorithm NAME=%s.\n", files[0], path.Dir(files[0]), name)
	return nil
}

// write updates the scenario, the pages and the audit.
func write(spec *process.Spec) error {
	file, err := duties.Draft(".", spec)
	if err != nil {
		return err
	}
	if file != "" {
		fmt.Println(file + ": drafted")
	}
	if err := assumptions([]*process.Spec{spec}); err != nil {
		return err
	}
	if _, err := pages.Write(".", algorithm.All, spec.Name); err != nil {
		return err
	}
	return pages.WriteSingles(".")
}

// The page about the assumptions of the algorithms, and the data from which it is written.
const (
	assumptionsPage = "docs/assumptions.md"
	assumptionsData = "docs/assumptions.json"
)

// assumptions audits the algorithms and replaces what docs/assumptions.md says of them.
func assumptions(specs []*process.Spec) error {
	specs = audit.Audited(specs)
	if len(specs) == 0 {
		return nil
	}
	var entries []audit.Entry
	data, err := os.ReadFile(assumptionsData)
	if err == nil {
		err = json.Unmarshal(data, &entries)
	}
	if err != nil {
		return err
	}
	rows, err := audit.Run(context.Background(), specs, audit.Default)
	if err != nil {
		return err
	}
	if err := audit.WriteScenarios(rows, filepath.FromSlash(audit.Folder)); err != nil {
		return err
	}
	entries = audit.Merge(entries, audit.Entries(rows))
	var text, page bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	err = errors.Join(enc.Encode(entries), audit.Markdown(&page, entries, audit.Default))
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(assumptionsData, text.Bytes(), 0o644), os.WriteFile(assumptionsPage, page.Bytes(), 0o644))
}

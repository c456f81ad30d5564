// Command tsgen writes the TypeScript types of the web page that are the JSON forms of package
// api/jsonform.
//
//	go run -C internal/gen/tools ./tsgen
//
// With -check nothing is written: it fails if the file is not what would be written.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gzuidhof/tygo/tygo"
)

const (
	repository = "../../.."
	forms      = "github.com/conclave-io/conclave/api/jsonform"
	// output is the generated file, in the repository.
	output = "web/ui/src/dashboard/forms.ts"
)

// head has the types of numbers, texts and pairs, which have no fields. The file with their Go types is
// left out.
const (
	scalars = "scalar.go"
	head    = `/** The public id of a session: "s-" and 32 hexadecimal digits. */
export type SessionID = string;
/** A number of 64 bits, in decimal digits. */
export type Uint64 = string;
/** A duration with its unit, such as "10s". */
export type Duration = string;
/** An upper bound of a latency in us, and the number of requests. */
export type LatencyCount = [number, number];
`
)

func main() {
	check := flag.Bool("check", false, "write nothing, fail if the file is not what would be written")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintf(os.Stderr, "tsgen: %v\n", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	if err := os.Chdir(repository); err != nil { // packages are loaded from the module in the working directory
		return err
	}
	content, err := generate()
	if err != nil {
		return err
	}
	if !check {
		return os.WriteFile(output, content, 0o644)
	}
	present, err := os.ReadFile(output)
	if err == nil && !bytes.Equal(present, content) {
		err = errors.New(output + " is not what would be generated; run make generate")
	}
	return err
}

// generate returns the types of all forms.
func generate() ([]byte, error) {
	dir, err := os.MkdirTemp("", "tsgen")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "forms.ts")
	err = tygo.New(&tygo.Config{Packages: []*tygo.PackageConfig{{
		Path: forms, OutputPath: name, Indent: "  ", ExcludeFiles: []string{scalars}, Frontmatter: head,
		TypeMappings: map[string]string{"time.Time": "string"},
	}}}).Generate()
	if err != nil {
		return nil, err
	}
	return os.ReadFile(name)
}

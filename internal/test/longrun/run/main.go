// Command run runs one part of a long run and writes the report anew. Lines of
// benchmarks in what the part prints become notes of it.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/conclave-io/conclave/internal/test/longrun"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func run() error {
	part := flag.String("part", "", "the `name` of the part")
	title := flag.String("title", "", "its heading in the report")
	total := flag.Bool("total", false, "add its figures up")
	folder := flag.String("folder", "docs/long-runs", "where the parts are kept; the report stands beside it")
	flag.Parse()
	if *part == "" {
		return errors.New("-part: missing; set it to the name of the part")
	}
	if flag.NArg() == 0 {
		return errors.New("command: missing; add the command to run after the flags")
	}
	scratch, err := os.MkdirTemp("", "longrun")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	notes := filepath.Join(scratch, "notes")
	header := longrun.Header{
		Title: *title, Command: strings.Join(flag.Args(), " "), Commit: longrun.Commit("."), Total: *total,
		Date: time.Now().UTC().Format(time.DateOnly), Machine: machine(),
	}
	start := time.Now()
	cmd := exec.Command(flag.Arg(0), flag.Args()[1:]...)
	if err := os.Setenv(longrun.Variable, notes); err != nil { // also for the command
		return err
	}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(os.Stdout, &output), os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", header.Command, err)
	}
	header.Seconds = time.Since(start).Seconds()
	for line := range strings.Lines(output.String()) {
		if subject, figures, ok := longrun.Benchmark(line); ok {
			if err := longrun.Note(subject, figures...); err != nil {
				return err
			}
		}
	}
	if err := longrun.Write(*folder, *part, header, notes); err != nil {
		return err
	}
	report, err := longrun.Report(*folder)
	if err != nil {
		return err
	}
	return os.WriteFile(*folder+".md", report, 0o644)
}

func machine() string {
	return fmt.Sprintf("%d cores, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

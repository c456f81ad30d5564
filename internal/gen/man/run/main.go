// Command run writes the manual pages of conclave, one for each command, into a directory. Their date is
// that of SOURCE_DATE_EPOCH, or today.
//
// Usage: go run ./internal/gen/man/run DIR
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/conclave-io/conclave/internal/cli"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("arguments: %q: expected the directory for the pages", args)
	}
	date := time.Now()
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH: %q: expected seconds since 1970", epoch)
		}
		date = time.Unix(seconds, 0)
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil {
		return err
	}
	return write(args[0], cli.Command(), date.UTC())
}

// write writes the pages of a command and of its subcommands.
func write(dir string, cmd *cobra.Command, date time.Time) error {
	for _, below := range cmd.Commands() {
		if !below.IsAvailableCommand() || below.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := write(dir, below, date); err != nil {
			return err
		}
	}
	text, err := page(cmd, date)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"), text, 0o644)
}

// flag matches a flag with its usage, as cobra writes them.
var flag = regexp.MustCompile(`(?m)^(?:\.PP\n)?(\\fB.*)\n\t(.*)$`)

// page returns the page of a command, in macros that man and mandoc read without a warning.
func page(cmd *cobra.Command, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	cmd.DisableAutoGenTag = true
	// The text has lists and tables, which must keep their lines.
	cmd.Long = fmt.Sprintf("```\n%s\n\n%s```", cmd.Long, cmd.Annotations["statuses"])
	if err := doc.GenMan(cmd, &doc.GenManHeader{Section: "1", Source: "Conclave", Manual: "Conclave", Date: &date}, &b); err != nil {
		return nil, fmt.Errorf("%s: %w", cmd.CommandPath(), err)
	}
	text := flag.ReplaceAll(b.Bytes(), []byte(".TP\n$1\n$2"))
	return bytes.Replace(text, []byte(date.Format(`"Jan 2006"`)), []byte(date.Format(`"2006-01-02"`)), 1), nil
}

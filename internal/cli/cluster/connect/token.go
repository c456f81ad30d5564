package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/outfile"
)

// The variables that can contain a token. No flag takes a token, because all users of the machine
// see the flags of a process.
const (
	tokenVar     = "CONCLAVE_TOKEN"
	tokenFileVar = "CONCLAVE_TOKEN_FILE"
)

// proof returns a function that returns the token of this program, or nil if there is none. The
// function reads a file each time, so that the token can be replaced.
func (f *Flags) proof() (func(context.Context) (string, error), error) {
	if f.tokenFile == "" && f.token == "" {
		return nil, nil
	}
	if f.tokenFile == "" {
		token := f.token
		return func(context.Context) (string, error) { return token, nil }, nil
	}
	path := f.tokenFile
	if IsToken(path) {
		return nil, errors.New("--token-file: is a token, not the name of a file: " + tokenVar + " takes a token; revoke this one if others may have seen it")
	}
	read := func(context.Context) (string, error) {
		content, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		token := strings.TrimSpace(string(content))
		if token == "" {
			return "", fmt.Errorf("%s: empty file; expected a token", path)
		}
		return token, nil
	}
	if _, err := read(context.Background()); err != nil {
		return nil, fmt.Errorf("--token-file: %w", err)
	}
	return read, nil
}

// IsToken reports whether a text looks like a token. Such a text must not appear in messages.
func IsToken(text string) bool { return strings.HasPrefix(text, "cvt1_") }

// NoToken refuses a principal whose name is a token: everybody can read the names of principals.
func NoToken(principal string) error {
	if _, name, _ := strings.Cut(principal, ":"); IsToken(name) || IsToken(principal) {
		return errors.New("principal: is a token: give the name that it proves, token:NAME; revoke the token if others may have seen it")
	}
	return nil
}

// HideToken removes the token from the environment that a command inherits, and from that of this
// process, which other processes of the user can read.
func HideToken() {
	blank(tokenVar)
	os.Unsetenv(tokenVar)
	os.Unsetenv(tokenFileVar)
}

// TokenFile is the flag --file of a command that creates a token: the file to write it to, or empty
// to print it.
type TokenFile string

// Register adds the flag for a token, such as "the token".
func (f *TokenFile) Register(flags *pflag.FlagSet, what string) {
	flags.StringVar((*string)(f), "file", "", "write "+what+" to this `file`, with mode 0600 (default: -, which prints it)")
	ui.StreamsFlag(flags, "file")
}

// Check refuses a file that cannot be written. It must be called first.
func (f *TokenFile) Check() error {
	if *f == outfile.Dash {
		*f = ""
	}
	if *f == "" {
		return nil
	}
	if _, err := outfile.Place(string(*f)); err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	return nil
}

// Write writes a token with mode 0600, unless it is to be printed.
func (f TokenFile) Write(token string) error {
	if f == "" {
		return nil
	}
	err := outfile.Write(string(f), 0o600, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, token)
		return err
	})
	if err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	return nil
}

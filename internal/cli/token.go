package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// The variables that a token can be in. No flag takes one, since everybody on the machine
// sees the flags of a process.
const (
	tokenVar     = "CONCLAVE_TOKEN"
	tokenFileVar = "CONCLAVE_TOKEN_FILE"
)

// proof returns what gives the token of this program, or nil if it has none. A file is read
// again each time, so that another token can be put there.
func (f *clientFlags) proof() (func(context.Context) (string, error), error) {
	if f.tokenFile == "" && f.token == "" {
		return nil, nil
	}
	if f.tokenFile == "" {
		token := f.token
		return func(context.Context) (string, error) { return token, nil }, nil
	}
	path := f.tokenFile
	read := func(context.Context) (string, error) {
		content, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		token := strings.TrimSpace(string(content))
		if token == "" {
			return "", errors.New("the file is empty")
		}
		return token, nil
	}
	if _, err := read(context.Background()); err != nil {
		return nil, fmt.Errorf("--token-file: %s: %w", path, err)
	}
	return read, nil
}

// hideToken takes the token out of what a command sees that this process runs: out of the
// environment that it inherits, and out of this process's own.
func hideToken() {
	blank(tokenVar)
	os.Unsetenv(tokenVar)
	os.Unsetenv(tokenFileVar)
}

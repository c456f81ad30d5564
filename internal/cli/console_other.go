//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package cli

import (
	"errors"
	"os"
)

var topSignals []os.Signal

// isTerminal finds no terminal that could be drawn on.
func isTerminal(*os.File) bool { return false }

type console struct{ keys chan byte }

func openConsole(_, _ *os.File) (*console, error) {
	return nil, errors.New("this system's terminals cannot be drawn on")
}

func (*console) draw(func(width, height int) []string) error { return nil }

func (*console) close() {}

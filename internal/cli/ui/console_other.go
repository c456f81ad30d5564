//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package ui

import (
	"errors"
	"os"
)

// TopSignals are the signals after which the screen is drawn again.
var TopSignals []os.Signal

// IsTerminal finds no terminal that could be drawn on.
func IsTerminal(*os.File) bool { return false }

type console struct{ Keys chan byte }

// OpenConsole fails: the screen cannot be drawn on this system.
func OpenConsole(_, _ *os.File) (*console, error) {
	return nil, errors.New("this system's terminals cannot be drawn on")
}

// Draw does nothing.
func (*console) Draw(func(width, height int) []string) error { return nil }

// Close does nothing.
func (*console) Close() {}

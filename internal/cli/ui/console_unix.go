//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package ui

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// TopSignals are the signals after which the screen is drawn again.
var TopSignals = []os.Signal{unix.SIGWINCH}

// IsTerminal reports whether a file is a terminal.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), getTermios)
	return err == nil
}

// console is a terminal that is drawn on. Until it is closed the shell's screen
// is put away, and keys are read one by one.
type console struct {
	in, out *os.File
	before  *unix.Termios // of in, if it is a terminal
	Keys    chan byte
}

// The control sequences that every terminal of the last decades knows.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l" // other screen, no cursor, no wrapping
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	toTop       = "\x1b[H"
	clearRest   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// OpenConsole begins to draw on a terminal.
func OpenConsole(in, out *os.File) (*console, error) {
	c := &console{in: in, out: out, Keys: make(chan byte)}
	if before, err := unix.IoctlGetTermios(int(in.Fd()), getTermios); err == nil {
		raw := *before
		// Ctrl-C is a key like others, so that the terminal is put right first,
		// and Ctrl-Z is none.
		raw.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG | unix.IEXTEN
		raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
		if err := unix.IoctlSetTermios(int(in.Fd()), setTermios, &raw); err != nil {
			return nil, fmt.Errorf("the terminal cannot be set: %w", err)
		}
		c.before = before
		go c.read() // it ends with the process, like every read of a terminal
	}
	_, err := out.WriteString(enterScreen)
	return c, err
}

func (c *console) read() {
	var b [16]byte
	for {
		n, err := c.in.Read(b[:])
		if err != nil {
			return
		}
		for _, key := range b[:n] {
			c.Keys <- key
		}
	}
}

// Draw shows the lines that fit.
func (c *console) Draw(lines func(width, height int) []string) error {
	width, height := defaultWidth, DefaultHeight
	if size, err := unix.IoctlGetWinsize(int(c.out.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 && size.Row > 0 {
		width, height = int(size.Col), int(size.Row)
	}
	text := strings.Join(lines(width, height), clearRest+"\r\n")
	_, err := c.out.WriteString(toTop + text + clearRest + clearBelow)
	return err
}

// Close shows the screen as it was before.
func (c *console) Close() {
	// There is nobody to tell if it fails.
	_, _ = c.out.WriteString(leaveScreen)
	if c.before != nil {
		_ = unix.IoctlSetTermios(int(c.in.Fd()), setTermios, c.before)
	}
}

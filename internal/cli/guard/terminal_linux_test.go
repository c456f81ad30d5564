package guard

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// screen is a pseudo-terminal with an interactive shell on it.
type screen struct {
	*run
	keys *os.File
	cmd  *exec.Cmd

	mu    sync.Mutex
	shown bytes.Buffer
	seen  int // how much of shown the test has asked about
}

func newScreen(r *run) *screen {
	r.t.Helper()
	keys, tty := openPty(r.t)
	s := &screen{run: r, keys: keys, cmd: exec.Command("sh", "-i")}
	s.cmd.Env = append(os.Environ(), "PS1=$ ", "ENV=", "HOME=/nonexistent")
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = tty, tty, tty
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	tty.Close()
	var reading sync.WaitGroup
	reading.Go(s.read)
	r.t.Cleanup(func() {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		r.gone()
		reading.Wait()
		keys.Close()
	})
	return s
}

func openPty(t *testing.T) (keys, tty *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return keys, tty
}

// read ends when nobody has the terminal open any more.
func (s *screen) read() {
	var b [1024]byte
	for {
		n, err := s.keys.Read(b[:])
		s.mu.Lock()
		s.shown.Write(b[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

func (s *screen) typeKeys(keys string) {
	s.t.Helper()
	if _, err := s.keys.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// expect waits until text appears after what was expected before.
func (s *screen) expect(text string) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			s.t.Logf("the screen shows:\n%s", s.text())
		}
	}()
	s.until(fmt.Sprintf("the screen shows %q", text), func() bool {
		i := strings.Index(s.text()[s.seen:], text)
		if i >= 0 {
			s.seen += i + len(text)
		}
		return i >= 0
	})
}

func (s *screen) runWrapper(how string) {
	s.t.Helper()
	s.typeKeys(fmt.Sprintf("%s wrapper 1h %s tty %s line %s\n", os.Args[0], s.token, os.Args[0], how))
}

const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
)

// TestTerminal runs a command that reads from the terminal, suspends it,
// continues it in the background and in the foreground, and interrupts it.
func TestTerminal(t *testing.T) {
	s := newScreen(newRun(t))
	s.runWrapper("")
	s.expect("reading")
	s.typeKeys(ctrlZ)
	s.expect("suspended")
	s.expect("Stopped")
	s.typeKeys("echo shell $((40+2))\n")
	s.expect("shell 42")
	s.typeKeys("fg\n")
	s.expect("wrapper") // the shell names the job that it continues
	s.typeKeys("some\n")
	s.expect("read some")
	s.typeKeys(ctrlC)
	s.expect(`"Status":130`)
	s.expect(`"Foreground":true`)
	s.typeKeys("echo status $?\n")
	s.expect("status 130")
}

// TestBackground starts a command in the background, where it is stopped when it
// reads, and brings it to the foreground.
func TestBackground(t *testing.T) {
	s := newScreen(newRun(t))
	s.runWrapper("&")
	s.expect("reading")
	s.expect("suspended")
	s.typeKeys("fg\n")
	s.expect("wrapper")
	s.typeKeys("other\n")
	s.expect("read other")
	s.typeKeys(ctrlC)
	s.expect(`"Status":130`)
	s.expect(`"Foreground":true`)
}

// TestHangUp closes the terminal under a command that has it.
func TestHangUp(t *testing.T) {
	if signal.Ignored(unix.SIGHUP) { // as under nohup: a process that the test starts would ignore it too
		signal.Notify(make(chan os.Signal, 1), unix.SIGHUP)
	}
	s := newScreen(newRun(t))
	s.runWrapper("")
	s.expect("reading")
	s.cmd.Process.Kill() // the shell leads the session: the kernel sends HUP
	s.gone()
}

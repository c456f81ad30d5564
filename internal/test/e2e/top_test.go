//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/conclave-io/conclave"
)

// openTerminal returns the two ends of a pseudo-terminal of 80x24.
func openTerminal(t *testing.T) (keys, tty *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err == nil {
		tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	}
	if err != nil {
		t.Fatal(err)
	}
	return keys, tty
}

// TestTopDrawsResizesAndPutsTheTerminalRight runs top on a terminal.
func TestTopDrawsResizesAndPutsTheTerminalRight(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	client := dial(t, conclave.Config{Servers: cluster.Addresses(), Program: "tester"})
	if _, err := client.Lock(within(t), strings.Repeat("long", 30)); err != nil {
		t.Fatal(err)
	}
	keys, tty := openTerminal(t)
	defer tty.Close()
	before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "top", "--interval", "100ms", "--servers", cluster.Addresses()[0])
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	shown := &attendance{}
	read := make(chan struct{})
	go func() {
		defer close(read)
		var b [4096]byte
		for {
			n, err := keys.Read(b[:])
			if n > 0 {
				shown.Write(b[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	shown.await(t, "\x1b[?1049h")
	shown.await(t, "1 locks")
	shown.await(t, "longlong") // cut: the holder still fits
	shown.await(t, "…")
	shown.await(t, "tester ")
	if err := unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 300}); err != nil {
		t.Fatal(err)
	}
	shown.await(t, strings.Repeat("long", 30))
	if _, err := keys.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("q ends it with %v", err)
	}
	shown.await(t, "\x1b[?1049l")
	after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("the terminal is left as %+v, %v; was %+v", after, err, before)
	}
	tty.Close()
	<-read
	keys.Close()
}

func TestTopWithoutATerminal(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 1)
	client := dial(t, conclave.Config{Servers: cluster.Addresses(), Program: "tester"})
	if _, err := client.Campaign(within(t), "chief", nil); err != nil {
		t.Fatal(err)
	}
	refused(t, 125, []string{"not a terminal", "conclave top --once"}, "top", "--servers", cluster.Addresses()[0])
	status, output, said := call(t, "top", "--once", "--elections", "--interval", "200ms", "--servers", cluster.Addresses()[0])
	if status != 0 || !strings.Contains(output, "\nELECTION  WAITING  ") || !strings.Contains(output, "\nchief     0        tester ") || said != "" {
		t.Errorf("status %d, %s%s", status, output, said)
	}
}

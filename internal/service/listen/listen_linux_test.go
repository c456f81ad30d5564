package listen

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// The system asks a silent caller whether it is still there, and gives it up after 25 s.
func TestSilentCallersAreAsked(t *testing.T) {
	l, err := TCP("listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	caller, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	option := func(number int) (value int) {
		if controlled := raw.Control(func(fd uintptr) { value, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, number) }); controlled != nil || err != nil {
			t.Fatal(controlled, err)
		}
		return value
	}
	if given := option(unix.TCP_KEEPIDLE) + option(unix.TCP_KEEPINTVL)*option(unix.TCP_KEEPCNT); given != 25 {
		t.Errorf("it is given up after %d s, want 25", given)
	}
}

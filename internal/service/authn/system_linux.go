package authn

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUser returns the user at the other end of a socket.
func peerUser(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var (
		credentials *unix.Ucred
		asked       error
	)
	if err := raw.Control(func(fd uintptr) {
		credentials, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if asked != nil {
		return 0, asked
	}
	return int(credentials.Uid), nil
}

package server

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

// fileSystem returns how many bytes a process without privileges can still write to the
// file system of a directory, and how many it has in all.
func fileSystem(dir string) (free, size int64) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, 0
	}
	return int64(s.Bavail) * s.Bsize, int64(s.Blocks) * s.Bsize
}

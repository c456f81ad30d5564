package server

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	// socketName is the admin socket in the data directory.
	socketName = "admin.sock"
	// longestSocket is how many bytes the path of a socket may have on all systems.
	longestSocket = 100
)

// socketPath is where the admin socket is, or "" if there is none.
func (c Config) socketPath() string {
	switch {
	case c.AdminSocket != "":
		return c.AdminSocket
	case c.Memory:
		return ""
	}
	return filepath.Join(c.Data, socketName)
}

func (c Config) checkSocket() error {
	if n := len(c.AdminSocket); n > longestSocket {
		return fmt.Errorf("admin-socket: %.40q...: %d bytes: must have at most %d", c.AdminSocket, n, longestSocket)
	}
	return nil
}

// listenAdmin opens the admin socket: a Unix socket that only the user may open whom the
// server runs as. A path that is too long for one, and was not asked for, is left out.
func (c Config) listenAdmin() (net.Listener, error) {
	path := c.socketPath()
	switch {
	case path == "":
		return nil, nil
	case len(path) > longestSocket && c.AdminSocket == "":
		c.Log.Warn("no admin socket: its default path is too long; set --admin-socket to a shorter path", "path", path, "bytes", len(path), "max_bytes", longestSocket)
		return nil, nil
	}
	if err := clearSocket(path); err != nil {
		return nil, fmt.Errorf("admin-socket: %w", err)
	}
	l, err := bind(path)
	if err != nil {
		return nil, fmt.Errorf("admin-socket: %w", err)
	}
	return l, nil
}

// bind listens on a socket that nobody else can open at any time, also where the door cannot
// ask who it is: it gets its mode in a directory of its own, and then its place.
func bind(path string) (net.Listener, error) {
	dir := path + ".tmp"
	made := filepath.Join(dir, "s")
	remove := func() { _, _ = os.Remove(made), os.Remove(dir) }
	remove() // what a server has left that was killed here
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	defer remove()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := cmp.Or(os.Chmod(made, 0o600), os.Rename(made, path)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &placed{l, path}, nil
}

// placed is a socket that was moved to a path, and is removed from there with it.
type placed struct {
	*net.UnixListener
	path string
}

func (p *placed) Close() error {
	err := p.UnixListener.Close()
	if err == nil {
		err = os.Remove(p.path)
	}
	return err
}

// clearSocket removes the socket of a server that was killed. What is not a socket, or
// is one that somebody listens on, stays.
func clearSocket(path string) error {
	is, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case is.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s: is not a socket: choose another path with --admin-socket", path)
	}
	if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
		conn.Close()
		return fmt.Errorf("%s: another process listens on it: choose another path with --admin-socket", path)
	}
	return os.Remove(path)
}

// throughSocket returns the principal of who has connected through the admin socket of a
// server: the user that runs the server, or root, whatever the mode of the socket is.
func throughSocket(conn *net.UnixConn, server uint64) (string, error) {
	uid, err := peerUser(conn)
	if err != nil {
		return "", fmt.Errorf("admin socket: %w", err)
	}
	if uid != 0 && uid != os.Geteuid() {
		return "", fmt.Errorf("admin socket: user %d: only the user who runs the server, and root, may use it", uid)
	}
	return localPrincipal(server, uid), nil
}

// local is the principal of who calls from within this process.
func (s *Server) local() string { return localPrincipal(s.cfg.ID, os.Getuid()) }

// localPrincipal is who calls a server from its own machine or process.
func localPrincipal(server uint64, uid int) string { return fmt.Sprintf("local:%d/%d", server, uid) }

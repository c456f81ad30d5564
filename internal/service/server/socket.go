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

	"github.com/conclave-io/conclave/internal/service/registry"
)

const (
	// socketName is the name of the admin socket in the data directory.
	socketName = "admin.sock"
	// longestSocket is the longest path of a socket that all systems support, in bytes.
	longestSocket = 100
)

// socketPath returns the path of the admin socket, or "" if there is none.
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

// listenAdmin opens the admin socket: a Unix socket that only the user who runs the server
// may open. If the default path is too long for a socket, there is none.
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

// bind listens on a socket that nobody else can open at any time, even on systems that
// cannot tell who connects: the socket gets its mode in a private directory, and is then
// moved to its path.
func bind(path string) (net.Listener, error) {
	dir := path + ".tmp"
	made := filepath.Join(dir, "s")
	remove := func() { _, _ = os.Remove(made), os.Remove(dir) }
	remove() // of a server that was killed here
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

// placed is a socket that was moved to a path. Closing it removes the path.
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

// recorded is the admin socket. Each connection through it is recorded in the audit log.
type recorded struct {
	net.Listener
	server *Server
}

func (l recorded) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if socket, is := conn.(*net.UnixConn); err == nil && is {
		who, problem := throughSocket(socket, l.server.cfg.ID)
		rec := registry.Record{Kind: "socket", Origin: registry.Origin{Actor: who, Via: "local", Remote: socketName}, Result: registry.OK}
		if problem != nil {
			rec.Result, rec.Reason = registry.Denied, problem.Error()
		}
		l.server.audit.Note(rec)
	}
	return conn, err
}

// clearSocket removes the socket of a server that was killed. It keeps files that are not
// sockets, and sockets on which another process listens.
func clearSocket(path string) error {
	is, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case is.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s: not a socket; choose another path with --admin-socket", path)
	}
	if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
		conn.Close()
		return fmt.Errorf("%s: in use by another process; choose another path with --admin-socket", path)
	}
	return os.Remove(path)
}

// throughSocket returns the principal of a connection through the admin socket of a server.
// Only the user who runs the server, and root, are accepted, whatever the mode of the socket.
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

// local is the principal of callers within this process.
func (s *Server) local() string { return localPrincipal(s.cfg.ID, os.Getuid()) }

// localPrincipal is the principal of callers on the server's own machine or in its process.
func localPrincipal(server uint64, uid int) string { return fmt.Sprintf("local:%d/%d", server, uid) }

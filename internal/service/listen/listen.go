package listen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// LongestSocket is the longest path of a socket that all systems support, in bytes.
const LongestSocket = 100

// keepAlive has the system notice within 25 s that the machine of a silent caller is gone. Until
// then, what a caller over HTTP waits for stays in its queue.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}

// TCP listens at an address. Key is the setting that it comes from.
func TCP(key, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{KeepAliveConfig: keepAlive}).Listen(context.Background(), "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s: %s is taken by another process: choose another address with --%s", key, address, key)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return l, nil
}

// Socket opens a Unix socket that only the user who runs the server may open.
func Socket(path string) (net.Listener, error) {
	if err := clearSocket(path); err != nil {
		return nil, err
	}
	return bind(path)
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

package attack

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

func init() {
	attacks = append(attacks, attack{
		number: 39, what: "open the admin socket as another user; make it 0666, also before a restart", expected: "EACCES, or refused; 0600 again", apart: true, run: socketOfOthers,
	})
}

// nobody is a user id that runs no server.
const nobody = 65534

func socketOfOthers(w *world) {
	if os.Getuid() != 0 {
		w.Skip("only root can be another user")
	}
	dir, err := os.MkdirTemp("", "conclave-attack-")
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		w.Fatal(err)
	}
	path := filepath.Join(dir, "admin.sock")
	c := servertest.Start(w.T, 1, func(cfg *config.Server) { cfg.AdminSocket = path })
	if conn, err := connectAs(nobody, path); !errors.Is(err, syscall.EACCES) {
		w.Errorf("another user connects: %v, %v", conn, err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		w.Fatal(err)
	}
	conn, err := connectAs(nobody, path)
	if err != nil {
		w.Fatal(err)
	}
	client := api.NewConclaveClient(w.over(conn))
	_, err = client.Access(w.within(), &api.AccessRequest{Ask: &api.AccessRequest_WhoAmI{}})
	if status.Code(err) != codes.Unauthenticated {
		w.Errorf("through a socket that all may open, another user gets %v", err)
	}
	c.Stop(1)
	w.leave(path)
	c.Restart(1)
	if is, err := os.Stat(path); err != nil || is.Mode().Perm() != 0o600 {
		w.Errorf("after a restart the socket is %v, %v", is, err)
	}
	if conn, err := connectAs(nobody, path); !errors.Is(err, syscall.EACCES) {
		w.Errorf("after a restart another user connects: %v, %v", conn, err)
	}
}

// leave creates a socket that all users may open, as a killed server may leave it.
func (w *world) leave(path string) {
	w.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		w.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(l.Close(), os.Chmod(path, 0o666)); err != nil {
		w.Fatal(err)
	}
}

// connectAs connects to a socket as another user. A thread changes its user id, and ends with the
// goroutine.
func connectAs(uid uintptr, path string) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, uid, uid, uid); errno != 0 {
			err = errno
			return
		}
		conn, err = net.Dial("unix", path)
	}()
	<-done
	return conn, err
}

// over returns a gRPC connection over an existing connection.
func (w *world) over(conn net.Conn) *grpc.ClientConn {
	w.Helper()
	client, err := grpc.NewClient("passthrough:///there", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return conn, nil }))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { client.Close() })
	return client
}

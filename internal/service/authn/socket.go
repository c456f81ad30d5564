package authn

import (
	"fmt"
	"net"
	"os"
)

// SocketName is the name of the admin socket, which callers through it have as their address.
const SocketName = "admin.sock"

// SocketUser returns the principal of a connection through the admin socket of a server.
// Only the user who runs the server, and root, are accepted, whatever the mode of the socket.
func SocketUser(conn *net.UnixConn, server uint64) (string, error) {
	uid, err := peerUser(conn)
	if err != nil {
		return "", fmt.Errorf("admin socket: %w", err)
	}
	if uid != 0 && uid != os.Geteuid() {
		return "", fmt.Errorf("admin socket: user %d: only the user who runs the server, and root, may use it", uid)
	}
	return localPrincipal(server, uid), nil
}

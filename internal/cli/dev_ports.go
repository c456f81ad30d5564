package cli

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

const (
	// peerStep is the distance from a server's port for clients to its port for servers.
	peerStep = 100
	// lastDevPort is the highest --port with which nine servers have valid ports.
	lastDevPort = 65535 - peerStep - 10
)

// devAddresses returns the addresses at which the servers take clients, and each other.
func devAddresses(servers, port int) (clients, peers []string) {
	for i := range servers {
		clients = append(clients, net.JoinHostPort("127.0.0.1", strconv.Itoa(port+i)))
		peers = append(peers, net.JoinHostPort("127.0.0.1", strconv.Itoa(port+peerStep+i)))
	}
	return clients, peers
}

// devFree returns an error if the servers cannot listen at one of their addresses, and suggests a
// --port. Without this check the servers of another dev would answer instead of those that cannot
// start.
func devFree(servers, port int) error {
	address, err := devTaken(servers, port)
	if err == nil {
		return nil
	}
	advice := "use another --port"
	for other := port + 10; other <= lastDevPort; other += 10 {
		if _, err := devTaken(servers, other); err == nil {
			advice = fmt.Sprintf("use --port %d, which is free", other)
			break
		}
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s: in use by another process, perhaps by another conclave dev; stop it, or %s", address, advice)
	}
	return fmt.Errorf("%s: cannot listen: %w; %s", address, err, advice)
}

// devTaken returns the first address that is not free, and why.
func devTaken(servers, port int) (string, error) {
	clients, peers := devAddresses(servers, port)
	for _, address := range append(clients, peers...) {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return address, err
		}
		l.Close()
	}
	return "", nil
}

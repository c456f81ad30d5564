package cli

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

const (
	// peerStep is how far above a server's port for clients that for servers lies.
	peerStep = 100
	// lastDevPort is the last at which the first server may take clients, so that
	// nine servers have their ports.
	lastDevPort = 65535 - peerStep - 10
)

// devAddresses returns where the servers take clients and each other.
func devAddresses(servers, port int) (clients, peers []string) {
	for i := range servers {
		clients = append(clients, net.JoinHostPort("127.0.0.1", strconv.Itoa(port+i)))
		peers = append(peers, net.JoinHostPort("127.0.0.1", strconv.Itoa(port+peerStep+i)))
	}
	return clients, peers
}

// devFree says which address the servers could not listen at, and which --port
// would do. Without this look the servers of another dev would answer for those
// that cannot start.
func devFree(servers, port int) error {
	address, err := devTaken(servers, port)
	if err == nil {
		return nil
	}
	advice := "choose another --port"
	for other := port + 10; other <= lastDevPort; other += 10 {
		if _, err := devTaken(servers, other); err == nil {
			advice += fmt.Sprintf(", say --port %d, whose ports are free", other)
			break
		}
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is taken by another process, perhaps another conclave dev: stop that, or %s", address, advice)
	}
	return fmt.Errorf("no server can take %s: %w: %s", address, err, advice)
}

// devTaken returns the first address that cannot be listened at, and why.
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

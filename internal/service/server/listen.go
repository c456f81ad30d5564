package server

import (
	"fmt"
	"net"

	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/listen"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// openListeners opens the listeners that the configuration does not supply.
func openListeners(c config.Server) (config.Server, error) {
	var err error
	if c.Listener == nil {
		if c.Listener, err = listen.TCP("listen", c.Listen); err != nil {
			closeAll(c.PeerListener)
			return c, err
		}
	}
	if c.PeerListener == nil {
		if c.PeerListener, err = listen.TCP("peer-listen", c.PeerListen); err != nil {
			closeAll(c.Listener)
			return c, err
		}
	}
	if !config.HasPort(c.Advertise) {
		c.Advertise = c.Listener.Addr().String()
	}
	if !config.HasPort(c.PeerAdvertise) && c.Join != "" {
		c.PeerAdvertise = c.PeerListener.Addr().String()
	}
	return c, nil
}

func closeAll(listeners ...net.Listener) {
	for _, l := range listeners {
		if l != nil {
			l.Close()
		}
	}
}

// listenAdmin opens the admin socket. If the default path is too long for a socket, there is none.
func listenAdmin(c config.Server) (net.Listener, error) {
	path := c.SocketPath()
	switch {
	case path == "":
		return nil, nil
	case len(path) > listen.LongestSocket && c.AdminSocket == "":
		c.Log.Warn("no admin socket: its default path is too long; set --admin-socket to a shorter path", "path", path, "bytes", len(path), "max_bytes", listen.LongestSocket)
		return nil, nil
	}
	l, err := listen.Socket(path)
	if err != nil {
		return nil, fmt.Errorf("admin-socket: %w", err)
	}
	return l, nil
}

func listenIfAsked(key, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	return listen.TCP(key, address)
}

// recorded is the admin socket. Each connection through it is recorded in the audit log.
type recorded struct {
	net.Listener
	server *Server
}

func (l recorded) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if socket, is := conn.(*net.UnixConn); err == nil && is {
		who, problem := authn.SocketUser(socket, l.server.cfg.ID)
		rec := registry.Record{Kind: "socket", Origin: registry.Origin{Actor: who, Via: "local", Remote: authn.SocketName}, Result: registry.OK}
		if problem != nil {
			rec.Result, rec.Reason = registry.Denied, problem.Error()
		}
		l.server.audit.Note(rec)
	}
	return conn, err
}

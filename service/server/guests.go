package server

import (
	"net"
	"slices"
)

// mostGuests bounds the connections that have not sent their first bytes yet.
const mostGuests = 1024

// guests are the connections that have not sent their first bytes yet, by remote host, the
// oldest first.
type guests struct {
	from  map[string][]net.Conn
	count int
}

func newGuests() *guests { return &guests{from: make(map[string][]net.Conn)} }

// hostAt returns the remote host of a connection.
func hostAt(conn net.Conn) string {
	address := conn.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// enter adds a connection. If there are too many, it returns one to close: the oldest from
// the host that has the most, so that a host that floods displaces only its own connections.
func (g *guests) enter(conn net.Conn) (goes net.Conn) {
	if g.count >= mostGuests {
		most := ""
		for host, conns := range g.from {
			if len(conns) > len(g.from[most]) {
				most = host
			}
		}
		goes = g.from[most][0]
		g.leave(goes)
	}
	host := hostAt(conn)
	g.from[host] = append(g.from[host], conn)
	g.count++
	return goes
}

// leave removes a connection, if it is there.
func (g *guests) leave(conn net.Conn) {
	host := hostAt(conn)
	conns := g.from[host]
	i := slices.Index(conns, conn)
	if i < 0 {
		return
	}
	g.count--
	if conns = slices.Delete(conns, i, i+1); len(conns) == 0 {
		delete(g.from, host)
	} else {
		g.from[host] = conns
	}
}

// all returns every connection.
func (g *guests) all() (conns []net.Conn) {
	for _, some := range g.from {
		conns = append(conns, some...)
	}
	return conns
}

package rest

import (
	"context"
	"net"
	"syscall"
)

type connKey struct{}

// WithConn attaches the connection of requests to their context.
func WithConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// gone reports whether the caller of a request has closed its side of the connection. The context of
// a request ends some time later: a goroutine has to notice it first.
func gone(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	conn, _ := ctx.Value(connKey{}).(net.Conn)
	raw, is := within(conn).(syscall.Conn)
	if !is {
		return false
	}
	file, err := raw.SyscallConn()
	if err != nil {
		return false
	}
	closed := false
	err = file.Control(func(fd uintptr) { closed = hungUp(fd) })
	return closed || err != nil
}

// within returns the connection below TLS, and below what the server has wrapped around it.
func within(conn net.Conn) net.Conn {
	switch outer := conn.(type) {
	case interface{ Inner() net.Conn }:
		return within(outer.Inner())
	case interface{ NetConn() net.Conn }:
		return within(outer.NetConn())
	}
	return conn
}

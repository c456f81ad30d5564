package config

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// CheckAddress returns an error if s is not "host:port". With port 0 the system chooses
// the port.
func CheckAddress(s string) error {
	if host, _, ok := splitAddress(s); !ok || host == "" {
		return fmt.Errorf(`%q: expected host:port, such as 127.0.0.1:7400`, s)
	}
	return nil
}

// splitAddress returns the parts of "host:port", without the zone of an IPv6 address. The host may be
// empty.
func splitAddress(s string) (host string, port uint64, ok bool) {
	host, text, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, false
	}
	host, _, _ = strings.Cut(host, "%")
	port, err = strconv.ParseUint(text, 10, 16)
	return host, port, err == nil
}

// HasPort reports whether an address has a port other than 0.
func HasPort(s string) bool {
	_, port, _ := splitAddress(s)
	return port != 0
}

// Everywhere reports whether an address means all network interfaces.
func Everywhere(s string) bool {
	host, _, ok := splitAddress(s)
	ip := net.ParseIP(host)
	return ok && (host == "" || ip != nil && ip.IsUnspecified())
}

// Loopback reports whether an address can be reached from this machine only.
func Loopback(s string) bool {
	host, _, ok := splitAddress(s)
	ip := net.ParseIP(host)
	return ok && (host == "localhost" || ip != nil && ip.IsLoopback())
}

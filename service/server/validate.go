package server

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/conclave-io/conclave/service/node"
)

// Validate reports the first thing that is wrong with a configuration that has
// its defaults, in the terms of its keys.
func (c Config) Validate() error {
	checks := []func() error{c.checkIdentity, c.checkAddresses, c.checkTimes, c.checkTLS, c.checkExposure, c.checkAccess, c.checkSocket, c.checkStateLimit, c.checkAudit, c.checkLog}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) checkIdentity() error {
	if strings.ContainsFunc(c.ClusterName, unicode.IsControl) || len(c.ClusterName) > 256 {
		return fmt.Errorf("cluster-name: %.40q is not a name: give 1 to 256 bytes without control characters", c.ClusterName)
	}
	if err := c.checkJoin(); err != nil || c.Join != "" {
		return err
	}
	peers, err := ParsePeers(c.Peers)
	if err != nil {
		return fmt.Errorf("peers: %w", err)
	}
	switch {
	case c.ID == 0:
		return errors.New("id: none is given: with peers, say which of them this server is")
	case peers[c.ID] == "":
		return fmt.Errorf("id: server %d is not among the peers %s", c.ID, c.Peers)
	case peers[c.ID] != c.PeerAdvertise:
		return fmt.Errorf("peer-advertise: %s is not what the peers have for server %d: %s", c.PeerAdvertise, c.ID, peers[c.ID])
	}
	return nil
}

// address is a configured address with its key.
type address struct{ key, value string }

func (c Config) checkAddresses() error {
	for _, a := range []address{{"listen", c.Listen}, {"peer-listen", c.PeerListen}} {
		if err := checkAddress(a.value); err != nil && !listensEverywhere(a.value) {
			return fmt.Errorf("%s: %w", a.key, err)
		}
	}
	for _, a := range []address{{"advertise", c.Advertise}, {"peer-advertise", c.PeerAdvertise}} {
		if listensEverywhere(a.value) {
			return fmt.Errorf("%s: %s is no address to connect to: say how others reach this server", a.key, a.value)
		}
		if err := checkAddress(a.value); err != nil {
			return fmt.Errorf("%s: %w", a.key, err)
		}
	}
	if err := checkAddress(c.HealthListen); c.HealthListen != "" && err != nil && !listensEverywhere(c.HealthListen) {
		return fmt.Errorf("health-listen: %w", err)
	}
	if c.Pprof == "" {
		return nil
	}
	if err := checkAddress(c.Pprof); err != nil {
		return fmt.Errorf("pprof: %w", err)
	}
	if !loopback(c.Pprof) {
		return fmt.Errorf("pprof: %s is not on this machine: use an address such as 127.0.0.1:6060", c.Pprof)
	}
	return nil
}

// checkAddress reports what keeps s from being "host:port". Port 0 lets the
// system choose.
func checkAddress(s string) error {
	if host, _, ok := splitAddress(s); !ok || host == "" {
		return fmt.Errorf(`%q is not "host:port", such as 127.0.0.1:7400`, s)
	}
	return nil
}

// splitAddress returns the parts of "host:port", of which the host may be
// empty.
func splitAddress(s string) (host string, port uint64, ok bool) {
	host, text, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, false
	}
	port, err = strconv.ParseUint(text, 10, 16)
	return host, port, err == nil
}

// listensEverywhere reports whether an address means all interfaces.
func listensEverywhere(s string) bool {
	host, _, ok := splitAddress(s)
	ip := net.ParseIP(host)
	return ok && (host == "" || ip != nil && ip.IsUnspecified())
}

// loopback reports whether an address can be reached from this machine only.
func loopback(s string) bool {
	host, _, ok := splitAddress(s)
	ip := net.ParseIP(host)
	return ok && (host == "localhost" || ip != nil && ip.IsLoopback())
}

func (c Config) checkTimes() error {
	switch {
	case c.Preset != "lan" && c.Preset != "wan":
		return fmt.Errorf("preset: %q is none: give lan or wan", c.Preset)
	case c.Heartbeat < 5*time.Millisecond || c.Heartbeat > time.Minute:
		return fmt.Errorf("heartbeat: %v is out of range: give 5ms to 1m", c.Heartbeat)
	case c.Election < 2*c.Heartbeat || c.Election > time.Hour:
		return fmt.Errorf("election-timeout: %v is out of range: give twice the heartbeat, which is %v, to 1h", c.Election, c.Heartbeat)
	case c.ViewLease < node.LeastViewLease(c.Election) || c.ViewLease > node.MostViewLease(c.Election):
		return fmt.Errorf("view-lease: %v: must be between %v, which a change of leaders may take, and %v", c.ViewLease, node.LeastViewLease(c.Election), node.MostViewLease(c.Election))
	}
	return nil
}

func (c Config) checkTLS() error {
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("tls-cert and tls-key: give both or none")
	case c.TLSCA != "" && c.TLSCert == "":
		return errors.New("tls-ca: clients can show certificates only over TLS: give tls-cert and tls-key too")
	case c.ClientCert != certRequired && c.ClientCert != certOptional:
		return fmt.Errorf("client-cert: %q: must be required or optional", c.ClientCert)
	case c.ClientCert == certOptional && c.TLSCA == "":
		return errors.New("client-cert: optional: no client can show a certificate without tls-ca; leave it out")
	}
	if given := count(c.PeerCert, c.PeerKey, c.PeerCA); given != 0 && given != 3 {
		return errors.New("peer-cert, peer-key and peer-ca: give all three or none")
	}
	return nil
}

func count(values ...string) int {
	given := 0
	for _, v := range values {
		if v != "" {
			given++
		}
	}
	return given
}

// checkExposure refuses to be reached from elsewhere in the clear.
func (c Config) checkExposure() error {
	switch {
	case c.Insecure:
		return nil
	case c.TLSCert == "" && !loopback(c.Listen):
		return fmt.Errorf("listen: %s can be reached from other machines, and without TLS: give --tls-cert and --tls-key, or --insecure to do without", c.Listen)
	case c.PeerCert == "" && !loopback(c.PeerListen):
		return fmt.Errorf("peer-listen: %s can be reached from other machines, and without TLS: give --peer-cert, --peer-key and --peer-ca, or --insecure to do without", c.PeerListen)
	}
	return nil
}

func (c Config) checkAccess() error {
	if c.Access != accessClosed && c.Access != accessOpen {
		return fmt.Errorf("access: %q: must be closed or open", c.Access)
	}
	return nil
}

func (c Config) checkStateLimit() error {
	if c.StateLimit < node.MinStateLimit || c.StateLimit > node.MaxStateLimit {
		return fmt.Errorf("state-limit: %d bytes: must be between %dMiB and %dMiB", c.StateLimit, node.MinStateLimit>>20, node.MaxStateLimit>>20)
	}
	return nil
}

func (c Config) checkLog() error {
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, c.LogLevel) {
		return fmt.Errorf("log-level: %q is none: give debug, info, warn or error", c.LogLevel)
	}
	if c.LogFormat != "text" && c.LogFormat != "json" {
		return fmt.Errorf("log-format: %q is none: give text or json", c.LogFormat)
	}
	return nil
}

func (c Config) checkAudit() error {
	if c.AuditRequired && c.AuditLog == "" {
		return errors.New("audit-required: there is no audit log to be written; set --audit-log")
	}
	return nil
}

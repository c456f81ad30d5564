package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/conclave-io/conclave/internal/service/guarded/home"
	"github.com/conclave-io/conclave/internal/service/node"
)

// Validate reports the first error in a configuration that has its defaults. Errors
// name the keys of settings.
func (c Server) Validate() error {
	checks := []func() error{c.checkIdentity, c.checkAddresses, c.checkTimes, c.checkTLS, c.checkExposure, c.checkAccess, c.checkSocket, c.checkStateLimit, c.checkAudit, c.checkLog}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c Server) checkIdentity() error {
	if strings.ContainsFunc(c.ClusterName, unicode.IsControl) || len(c.ClusterName) > 256 {
		return fmt.Errorf("cluster-name: %.40q: must be 1 to 256 bytes without control characters", c.ClusterName)
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
		return errors.New("id: missing; set it to the id of this server in peers")
	case peers[c.ID] == "":
		return fmt.Errorf("id: %d: not among the peers %s", c.ID, c.Peers)
	case peers[c.ID] != c.PeerAdvertise:
		return fmt.Errorf("peer-advertise: %s: must be the address of server %d in peers, %s", c.PeerAdvertise, c.ID, peers[c.ID])
	}
	return nil
}

// address is a configured address with its key.
type address struct{ key, value string }

func (c Server) checkAddresses() error {
	for _, a := range []address{{"listen", c.Listen}, {"peer-listen", c.PeerListen}} {
		if err := CheckAddress(a.value); err != nil && !Everywhere(a.value) {
			return fmt.Errorf("%s: %w", a.key, err)
		}
	}
	for _, a := range []address{{"advertise", c.Advertise}, {"peer-advertise", c.PeerAdvertise}} {
		if Everywhere(a.value) {
			return fmt.Errorf("%s: %s: others cannot connect to this address; set the address at which they reach this server", a.key, a.value)
		}
		if err := CheckAddress(a.value); err != nil {
			return fmt.Errorf("%s: %w", a.key, err)
		}
	}
	if err := CheckAddress(c.HealthListen); c.HealthListen != "" && err != nil && !Everywhere(c.HealthListen) {
		return fmt.Errorf("health-listen: %w", err)
	}
	if c.Pprof == "" {
		return nil
	}
	if err := CheckAddress(c.Pprof); err != nil {
		return fmt.Errorf("pprof: %w", err)
	}
	if !Loopback(c.Pprof) {
		return fmt.Errorf("pprof: %s: must be an address on this machine, such as 127.0.0.1:6060", c.Pprof)
	}
	return nil
}

func (c Server) checkTimes() error {
	switch {
	case c.Preset != "lan" && c.Preset != "wan":
		return fmt.Errorf("preset: %q: must be lan or wan", c.Preset)
	case c.Heartbeat < 5*time.Millisecond || c.Heartbeat > time.Minute:
		return fmt.Errorf("heartbeat: %v: must be between 5ms and 1m", c.Heartbeat)
	case c.Election < 2*c.Heartbeat || c.Election > time.Hour:
		return fmt.Errorf("election-timeout: %v: must be between twice the heartbeat, %v, and 1h", c.Election, 2*c.Heartbeat)
	case c.ViewLease < home.LeastLease(c.Election) || c.ViewLease > home.MostLease(c.Election):
		return fmt.Errorf("view-lease: %v: must be between %v, which a change of leaders may take, and %v", c.ViewLease, home.LeastLease(c.Election), home.MostLease(c.Election))
	}
	return nil
}

func (c Server) checkTLS() error {
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("tls-cert and tls-key: set both or neither")
	case c.TLSCA != "" && c.TLSCert == "":
		return errors.New("tls-ca: requires TLS for clients; set tls-cert and tls-key too")
	case c.ClientCert != CertRequired && c.ClientCert != CertOptional:
		return fmt.Errorf("client-cert: %q: must be required or optional", c.ClientCert)
	case c.ClientCert == CertOptional && c.TLSCA == "":
		return errors.New("client-cert: optional: has no effect without tls-ca; set tls-ca, or remove client-cert")
	}
	if given := count(c.PeerCert, c.PeerKey, c.PeerCA); given != 0 && given != 3 {
		return errors.New("peer-cert, peer-key and peer-ca: set all three or none")
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

// checkExposure refuses addresses that other machines can reach without TLS.
func (c Server) checkExposure() error {
	switch {
	case c.Insecure:
		return nil
	case c.TLSCert == "" && !Loopback(c.Listen):
		return fmt.Errorf("listen: %s: other machines can connect without TLS; set --tls-cert and --tls-key, or allow it with --insecure", c.Listen)
	case c.PeerCert == "" && !Loopback(c.PeerListen):
		return fmt.Errorf("peer-listen: %s: other machines can connect without TLS; set --peer-cert, --peer-key and --peer-ca, or allow it with --insecure", c.PeerListen)
	}
	return nil
}

func (c Server) checkAccess() error {
	if c.Access != AccessClosed && c.Access != AccessOpen {
		return fmt.Errorf("access: %q: must be closed or open", c.Access)
	}
	return nil
}

func (c Server) checkStateLimit() error {
	if c.StateLimit < node.MinStateLimit || c.StateLimit > node.MaxStateLimit {
		return fmt.Errorf("state-limit: %d bytes: must be between %dMiB and %dMiB", c.StateLimit, node.MinStateLimit>>20, node.MaxStateLimit>>20)
	}
	return nil
}

func (c Server) checkLog() error {
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, c.LogLevel) {
		return fmt.Errorf("log-level: %q: must be debug, info, warn or error", c.LogLevel)
	}
	if c.LogFormat != LogText && c.LogFormat != LogJSON {
		return fmt.Errorf("log-format: %q: must be text or json", c.LogFormat)
	}
	return nil
}

func (c Server) checkAudit() error {
	if c.AuditRequired && c.AuditLog == "" {
		return errors.New("audit-required: requires an audit log; set --audit-log")
	}
	if c.AuditGrants != "" && c.AuditLog == "" {
		return errors.New("audit-grants: needs an audit log; set --audit-log")
	}
	return nil
}

// checkJoin checks the settings of a server that joins.
func (c Server) checkJoin() error {
	switch {
	case c.Join == "" && c.Learner:
		return errors.New("learner: only a server that joins can be one; set --join too")
	case c.Join == "" && c.JoinTokenFile != "":
		return errors.New("join-token-file: only a server that joins needs one; set --join too")
	case c.Join == "":
		return nil
	case c.ID != 0 || c.Peers != "":
		return errors.New("join: a server that joins gets its id and peers from the cluster; remove --id and --peers")
	}
	for _, address := range c.JoinAddresses() {
		if err := CheckAddress(address); err != nil {
			return fmt.Errorf("join: %w", err)
		}
	}
	return nil
}

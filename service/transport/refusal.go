package transport

import (
	"fmt"

	"github.com/conclave-io/conclave/internal/wire"
)

// Code says why a server refuses another. Codes travel on the wire: new ones
// are appended, none is ever reused.
type Code uint8

const (
	// Busy is the only refusal that passes: try again.
	Busy Code = iota + 1
	// OtherCluster means that the two belong to different clusters.
	OtherCluster
	// UnknownServer means that the dialler's id is not that of a peer.
	UnknownServer
	// OwnID means that the dialler has the id of the server it dialled.
	OwnID
	// Duplicate means that another server with the dialler's id is connected.
	Duplicate
	// NewerVersion is no longer sent: servers agree on levels.
	NewerVersion
	// WrongServer means that the dialler reached another server than it meant.
	WrongServer
	// Removed means that the dialler was removed from the cluster for good.
	Removed
	// LevelUnknown means that one of the two does not read the cluster's level.
	LevelUnknown
	// WrongCertificate means that the dialler's certificate is not that of the
	// server that it says it is.
	WrongCertificate
)

var codeNames = [...]string{
	Busy: "busy", OtherCluster: "other cluster", UnknownServer: "unknown server", OwnID: "own id",
	Duplicate: "duplicate id", NewerVersion: "newer version", WrongServer: "wrong server",
	Removed: "removed", LevelUnknown: "level unknown", WrongCertificate: "wrong certificate",
}

func (c Code) String() string {
	if c == 0 || int(c) >= len(codeNames) {
		return fmt.Sprintf("code %d", uint8(c))
	}
	return codeNames[c]
}

// Refusal is why a server does not talk to another: one line that reads the
// same on both sides.
type Refusal struct {
	Code Code
	Text string
}

func (r *Refusal) Error() string { return r.Text }

// Final reports whether trying again is of no use until somebody changes a
// configuration.
func (r *Refusal) Final() bool { return r.Code != Busy }

func refuse(code Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Text: fmt.Sprintf(format, args...)}
}

func (r *Refusal) append(b []byte) []byte {
	b = append(b, byte(r.Code))
	return wire.AppendBytes(b, r.Text[:min(len(r.Text), maxText)])
}

func decodeRefusal(b []byte) (*Refusal, error) {
	in := wire.NewReader(b)
	r := &Refusal{Code: Code(in.Byte()), Text: in.String()}
	if err := in.Close(); err != nil {
		return nil, fmt.Errorf("malformed refusal: %w", err)
	}
	if err := checkText(r.Text); err != nil {
		return nil, fmt.Errorf("malformed refusal: its text %w", err)
	}
	return r, nil
}

// examine says why this server does not talk to the one that introduced itself
// as h, or nil. It looks at the introduction alone.
func (t *Transport) examine(h Hello) *Refusal {
	self := t.cfg.Self
	switch {
	case h.Cluster != self.Cluster:
		return refuse(OtherCluster, "server %d at %s belongs to cluster %016x, the peer at %s to cluster %016x: check --peers and --cluster-name",
			h.Server, h.PeerAddress, h.Cluster, self.PeerAddress, self.Cluster)
	case h.Server == self.Server && h.UID != self.UID:
		return refuse(OwnID, "two servers have the id %d: one at %s, one at %s; give each its own id",
			self.Server, h.PeerAddress, self.PeerAddress)
	case h.Receiver != self.Server || h.Server == self.Server:
		return refuse(WrongServer, "server %d reached server %d at %s where it expected server %d: the address of server %d in --peers points to the wrong server",
			h.Server, self.Server, self.PeerAddress, h.Receiver, h.Receiver)
	case t.cfg.Removed(h.Server):
		return refuse(Removed, "server %d was removed from the cluster, says server %d at %s: its data directory is kept, and of no more use to the cluster",
			h.Server, self.Server, self.PeerAddress)
	case t.peer(h.Server) == nil && (t.cfg.Takes == nil || !t.cfg.Takes(h)):
		return t.stranger(h)
	}
	return t.compare(h)
}

// compare refuses a server that does not read the level of the cluster, and one
// that knows a level which this server does not read.
func (t *Transport) compare(h Hello) *Refusal {
	self := t.hello(h.Server)
	level := max(self.Level, h.Level)
	for _, s := range [...]Hello{h, self} {
		if level != 0 && !s.reads(level) {
			return refuse(LevelUnknown, "server %d reads levels %d to %d, the cluster is at level %d: install a release that reads level %d on server %d",
				s.Server, s.MinLevel, s.MaxLevel, level, level, s.Server)
		}
	}
	return nil
}

func (t *Transport) stranger(h Hello) *Refusal {
	return refuse(UnknownServer, "server %d at %s is not a member that server %d at %s knows: check --peers",
		h.Server, h.PeerAddress, t.cfg.Self.Server, t.cfg.Self.PeerAddress)
}

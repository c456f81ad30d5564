package peering

import (
	"fmt"

	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/founding"
)

// Code is the reason why a server refuses another. Codes are sent to other servers: new
// ones are appended, and none is ever reused.
type Code uint8

const (
	// Busy is the only temporary refusal: try again.
	Busy Code = iota + 1
	// OtherCluster means that the two belong to different clusters.
	OtherCluster
	// UnknownServer means that no peer has the id of the server that dialled.
	UnknownServer
	// OwnID means that the server that dialled has the id of the server that it reached.
	OwnID
	// Duplicate means that another server with the id of the server that dialled is connected.
	Duplicate
	// NewerVersion is no longer sent: servers agree on levels.
	NewerVersion
	// WrongServer means that the server that dialled reached a different one than it meant.
	WrongServer
	// Removed means that the server that dialled was removed from the cluster for good.
	Removed
	// LevelUnknown means that one of the two servers does not read the cluster's level.
	LevelUnknown
	// WrongCertificate means that the certificate does not belong to the server that the
	// introduction names.
	WrongCertificate
	// Copied means that another live process runs with the data of the server that dialled, and
	// started earlier.
	Copied
	// Superseded means that another live process runs with the data of the server that dialled,
	// and started later, but is the one that is connected.
	Superseded
)

var codeNames = [...]string{
	Busy: "busy", OtherCluster: "other cluster", UnknownServer: "unknown server", OwnID: "own id",
	Duplicate: "duplicate id", NewerVersion: "newer version", WrongServer: "wrong server",
	Removed: "removed", LevelUnknown: "level unknown", WrongCertificate: "wrong certificate",
	Copied: "copy of a server", Superseded: "superseded by a copy",
}

func (c Code) String() string {
	if c == 0 || int(c) >= len(codeNames) {
		return fmt.Sprintf("code %d", uint8(c))
	}
	return codeNames[c]
}

// Refusal says why a server does not talk to another. The text is one line that makes sense
// on both sides.
type Refusal struct {
	Code Code
	Text string
}

func (r *Refusal) Error() string { return r.Text }

// Final reports whether trying again is useless until somebody changes a
// configuration.
func (r *Refusal) Final() bool { return r.Code != Busy }

// SharesData reports whether the refusal is because of two processes with the same data.
func (r *Refusal) SharesData() bool { return r.Code == Copied || r.Code == Superseded }

// Reason returns the reason as package founding knows it, which decides whether this server stops.
func (r *Refusal) Reason() founding.Refusal {
	switch r.Code {
	case Removed:
		return founding.Removed
	case UnknownServer:
		return founding.Unknown
	case Copied:
		return founding.Copied
	case Superseded:
		return founding.Superseded
	}
	return founding.Misfit
}

// Refuse returns a Refusal with a text as Sprintf makes it.
func Refuse(code Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Text: fmt.Sprintf(format, args...)}
}

// Append appends the encoding of r to b.
func (r *Refusal) Append(b []byte) []byte {
	b = append(b, byte(r.Code))
	return wire.AppendBytes(b, r.Text[:min(len(r.Text), maxText)])
}

// DecodeRefusal reads what Append wrote.
func DecodeRefusal(b []byte) (*Refusal, error) {
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

// Examiner is what a server knows when another one introduces itself. The functions are called
// only for introductions that pass all other checks.
type Examiner struct {
	// Self is this server's introduction to the other one.
	Self Hello
	// Ready means that this server has read its state of the cluster. Before that it knows
	// neither the members nor the level. It must then not give a final refusal, which costs
	// seconds or stops the other server.
	Ready bool
	// Removed reports whether a server was removed from the cluster for good.
	Removed func(server uint64) bool
	// Knows reports whether a server is a peer, and Takes whether to accept it as a new one.
	Knows func(server uint64) bool
	Takes func(h Hello) bool
}

// Examine returns why this server does not talk to the one that introduced itself
// as h, or nil. It looks at the introduction alone.
func (d *Examiner) Examine(h Hello) *Refusal {
	self := d.Self
	switch {
	case h.Cluster != self.Cluster:
		return Refuse(OtherCluster, "server %d at %s belongs to cluster %016x, the peer at %s to cluster %016x: check --peers and --cluster-name",
			h.Server, h.PeerAddress, h.Cluster, self.PeerAddress, self.Cluster)
	case h.Server == self.Server && h.UID != self.UID:
		return Refuse(OwnID, "two servers have the id %d: one at %s, one at %s; give each its own id",
			self.Server, h.PeerAddress, self.PeerAddress)
	case h.Receiver != self.Server || h.Server == self.Server:
		return Refuse(WrongServer, "server %d reached server %d at %s where it expected server %d: the address of server %d in --peers points to the wrong server",
			h.Server, self.Server, self.PeerAddress, h.Receiver, h.Receiver)
	case d.Removed(h.Server):
		return Refuse(Removed, "server %d was removed from the cluster, says server %d at %s: its data directory is kept, and of no more use to the cluster",
			h.Server, self.Server, self.PeerAddress)
	case !d.Knows(h.Server) && !d.Takes(h):
		if !d.Ready {
			return d.starting()
		}
		return d.Stranger(h)
	}
	return d.compare(h)
}

// compare refuses a server that does not read the level of the cluster, and one whose
// cluster level this server does not read.
func (d *Examiner) compare(h Hello) *Refusal {
	level := max(d.Self.Level, h.Level)
	for _, s := range [...]Hello{h, d.Self} {
		if level != 0 && !s.reads(level) {
			if !d.Ready {
				return d.starting()
			}
			return Refuse(LevelUnknown, "server %d reads levels %d to %d, the cluster is at level %d: install a release that reads level %d on server %d",
				s.Server, s.MinLevel, s.MaxLevel, level, level, s.Server)
		}
	}
	return nil
}

func (d *Examiner) starting() *Refusal {
	return Refuse(Busy, "server %d has not read its data directory yet; trying again helps", d.Self.Server)
}

// Stranger refuses a server that is not a peer.
func (d *Examiner) Stranger(h Hello) *Refusal {
	return Refuse(UnknownServer, "server %d at %s is not a member that server %d at %s knows: check --peers",
		h.Server, h.PeerAddress, d.Self.Server, d.Self.PeerAddress)
}

// Recognise checks that the expected peer answered an introduction. The other side has
// checked more, and has accepted.
func (d *Examiner) Recognise(peer uint64, h Hello) error {
	if h.Cluster != d.Self.Cluster || h.Server != peer || h.Receiver != d.Self.Server {
		return fmt.Errorf("server %d of cluster %016x answers server %d where server %d of cluster %016x was expected: check --peers",
			h.Server, h.Cluster, h.Receiver, peer, d.Self.Cluster)
	}
	return nil
}

package peering

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.etcd.io/raft/v3"

	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/founding"
)

// ProtocolVersion is the version of the head of a Hello: of all fields that this package
// knows. Fields are only ever added at the end, and a receiver of any version skips unknown
// ones. What two servers may say to each other is decided by levels.
const ProtocolVersion = 1

const (
	// MaxGreeting bounds the frames of a handshake, in bytes.
	MaxGreeting = 8 << 10
	// maxText bounds the addresses in a Hello and the text of a Refusal.
	maxText = 1024
	// MaxBuild bounds the name of a build, in bytes.
	MaxBuild = 64
)

// Hello is the introduction of a server. Both sides of a connection send one before
// anything else. The side that dialled sends another one when something in it has changed.
type Hello struct {
	// Version is the ProtocolVersion of the sender.
	Version uint32
	// Cluster identifies the cluster that the sender belongs to.
	Cluster uint64
	// Server is the id of the sender.
	Server uint64
	// UID was drawn when the data directory of the sender was created. A server that lost
	// its data comes back with a different one.
	UID uint64
	// Receiver is the server that the sender believes it talks to.
	Receiver uint64
	// PeerAddress and ClientAddress are the sender's addresses for servers and for clients.
	PeerAddress, ClientAddress string
	// Phase is the state of founding at the sender. Record names the data directories with
	// which the cluster was founded, nil if the sender does not know it.
	Phase  founding.Phase
	Record founding.Record
	// MinLevel and MaxLevel are the levels that the sender reads, from 1 up.
	MinLevel, MaxLevel uint32
	// Level is the level of the cluster, 0 if the sender does not know it yet.
	Level uint32
	// Build names the sender's build, for people.
	Build string
	// Nonce identifies the process: a server draws it each time it starts. It is 0 if the
	// sender's release has none. Age is the time since then, in ns.
	Nonce uint64
	Age   uint64
	// Copies are processes that the sender has lately refused as copies of its peers.
	Copies []Copy
}

// Copy is a process that a server has refused, because another live process runs with the
// same data.
type Copy struct {
	// Server is the id of the server whose data it is.
	Server uint64
	// Where is the address that the process states, and where it comes from, for people.
	Where string
	// Ago is the time since it was last refused, in ns.
	Ago uint64
}

const (
	// MostCopies bounds the copies in a Hello.
	MostCopies = 8
	// maxWhere bounds the text of Copy.Where, in bytes.
	maxWhere = 256
	// maxAge bounds an age, in ns: 146 years.
	maxAge = 1 << 62
)

// Append appends the encoding of h to b.
func (h Hello) Append(b []byte) []byte {
	b = wire.AppendUint(b, uint64(h.Version))
	for _, v := range [...]uint64{h.Cluster, h.Server, h.UID, h.Receiver} {
		b = wire.AppendUint(b, v)
	}
	b = wire.AppendBytes(b, h.PeerAddress)
	b = wire.AppendBytes(b, h.ClientAddress)
	b = append(b, byte(h.Phase))
	b = wire.AppendUint(b, uint64(len(h.Record)))
	for _, f := range h.Record {
		b = wire.AppendUint(b, f.ID)
		b = wire.AppendUint(b, f.UID)
	}
	for _, v := range [...]uint32{h.MinLevel, h.MaxLevel, h.Level} {
		b = wire.AppendUint(b, uint64(v))
	}
	b = wire.AppendBytes(b, h.Build)
	if h.Nonce == 0 {
		return b
	}
	b = wire.AppendUint(wire.AppendUint(b, h.Nonce), h.Age)
	b = wire.AppendUint(b, uint64(len(h.Copies)))
	for _, c := range h.Copies {
		b = wire.AppendUint(b, c.Server)
		b = wire.AppendBytes(b, c.Where)
		b = wire.AppendUint(b, c.Ago)
	}
	return b
}

// DecodeHello reads what Append wrote, and skips what follows.
func DecodeHello(b []byte) (Hello, error) {
	r := wire.NewReader(b)
	h := Hello{Version: readUint32(r, "protocol version")}
	for _, v := range [...]*uint64{&h.Cluster, &h.Server, &h.UID, &h.Receiver} {
		*v = r.Uint()
	}
	h.PeerAddress, h.ClientAddress = r.String(), r.String()
	if h.Phase = founding.Phase(r.Byte()); h.Phase >= founding.Phases {
		h.Phase = founding.NotReady // one that was added later
	}
	h.Record = readRecord(r)
	h.MinLevel, h.MaxLevel, h.Level = readUint32(r, "level"), readUint32(r, "level"), readUint32(r, "level")
	h.Build = r.String()
	if rest := r.Rest(); len(rest) > 0 && r.Err() == nil {
		r = wire.NewReader(rest)
		if h.Nonce = r.Uint(); h.Nonce != 0 {
			h.Age, h.Copies = r.Uint(), readCopies(r)
		}
	}
	err := r.Err()
	if err == nil {
		err = h.Check()
	}
	if err != nil {
		return Hello{}, fmt.Errorf("malformed introduction: %w", err)
	}
	return h, nil
}

func readUint32(r *wire.Reader, what string) uint32 {
	v := r.Uint()
	if v > 1<<32-1 {
		r.Fail(fmt.Errorf("%s: %d: must be at most 32 bits", what, v))
	}
	return uint32(v)
}

func readRecord(r *wire.Reader) founding.Record {
	n := r.Uint()
	if n > founding.MaxFounders {
		r.Fail(fmt.Errorf("founding record: %d servers: must be at most %d", n, founding.MaxFounders))
	}
	var record founding.Record
	for range n {
		if r.Err() != nil {
			return nil
		}
		record = append(record, founding.Founder{ID: r.Uint(), UID: r.Uint()})
	}
	return record
}

func readCopies(r *wire.Reader) (copies []Copy) {
	n := r.Uint()
	if n > MostCopies {
		r.Fail(fmt.Errorf("copies: %d: must be at most %d", n, MostCopies))
	}
	for range n {
		if r.Err() != nil {
			return nil
		}
		copies = append(copies, Copy{Server: r.Uint(), Where: r.String(), Ago: r.Uint()})
	}
	return copies
}

// Check reports an error in what a server says of itself.
func (h Hello) Check() error {
	switch {
	case h.Version == 0:
		return errors.New("protocol version 0: the first is 1")
	case h.Server == 0 || raft.IsLocalMsgTarget(h.Server):
		return fmt.Errorf("server id %d is reserved: use a number from 1 up", h.Server)
	case h.MinLevel == 0 || h.MinLevel > h.MaxLevel:
		return fmt.Errorf("levels: %d to %d: must be an ascending range from 1 up", h.MinLevel, h.MaxLevel)
	case len(h.Build) > MaxBuild:
		return fmt.Errorf("build %.64q has %d bytes: at most %d are allowed", h.Build, len(h.Build), MaxBuild)
	}
	if h.Record != nil {
		if err := h.Record.Check(); err != nil {
			return err
		}
	}
	for _, address := range [...]string{h.PeerAddress, h.ClientAddress} {
		if err := checkText(address); err != nil {
			return fmt.Errorf("address %.64q %w", address, err)
		}
	}
	if err := checkText(h.Build); err != nil {
		return fmt.Errorf("build %.64q %w", h.Build, err)
	}
	return h.checkProcess()
}

// checkProcess reports an error in what a server says of its process and of others.
func (h Hello) checkProcess() error {
	if h.Age > maxAge {
		return fmt.Errorf("age: %d ns: must be at most %d", h.Age, uint64(maxAge))
	}
	for _, c := range h.Copies {
		if c.Ago > maxAge {
			return fmt.Errorf("copy of server %d: refused %d ns ago: must be at most %d", c.Server, c.Ago, uint64(maxAge))
		}
		if err := checkText(c.Where); err != nil {
			return fmt.Errorf("copy of server %d: address %.64q %w", c.Server, c.Where, err)
		}
	}
	return nil
}

// Answer returns what the sender says about the founding of its cluster.
func (h Hello) Answer() founding.Answer {
	return founding.Answer{UID: h.UID, Phase: h.Phase, Record: h.Record}
}

// reads reports whether the sender reads a level.
func (h Hello) reads(level uint32) bool { return h.MinLevel <= level && level <= h.MaxLevel }

// checkText refuses text that does not print on one line.
func checkText(s string) error {
	switch {
	case len(s) > maxText:
		return fmt.Errorf("has %d bytes: at most %d are allowed", len(s), maxText)
	case !utf8.ValidString(s):
		return errors.New("is not valid UTF-8")
	case strings.ContainsFunc(s, unicode.IsControl):
		return errors.New("contains control characters")
	}
	return nil
}

// Differs reports whether two introductions with the same server id come from different
// processes, as far as can be told. A restarted server keeps both its UID and its address, and
// draws another nonce. A release without nonces may be the one before an upgrade, or after it
// was taken back.
func (h Hello) Differs(other Hello) bool {
	return h.UID != other.UID || h.PeerAddress != other.PeerAddress || h.sharesData(other)
}

// sharesData reports whether two introductions come from two processes with the same data.
func (h Hello) sharesData(other Hello) bool {
	return h.UID == other.UID && h.Nonce != other.Nonce && h.Nonce != 0 && other.Nonce != 0
}

package transport

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.etcd.io/raft/v3"

	"github.com/conclave-io/conclave/internal/wire"
)

// ProtocolVersion is the newest version of the protocol between servers that
// this package speaks.
const ProtocolVersion = 1

// maxText bounds the addresses in a Hello and the text of a Refusal.
const maxText = 1024

// Hello is how a server introduces itself. Both sides of a connection send
// one before anything else.
type Hello struct {
	// Version is the newest protocol version that the sender speaks.
	Version uint32
	// Cluster identifies the cluster that the sender belongs to.
	Cluster uint64
	// Server is the id of the sender in its cluster.
	Server uint64
	// UID was drawn when the data directory of the sender was created: a
	// server that lost its data comes back with another one.
	UID uint64
	// PeerAddress and ClientAddress are where the sender takes the connections
	// of servers and of clients.
	PeerAddress, ClientAddress string
	// KnownUID is the UID that the sender has on record for the receiver, 0 if
	// it has none.
	KnownUID uint64
	// Receiver is the server that the sender believes it talks to.
	Receiver uint64
}

// append appends the encoding of h to b. Fields are only ever added at the
// end, together with a higher Version.
func (h Hello) append(b []byte) []byte {
	b = wire.AppendUint(b, uint64(h.Version))
	for _, v := range [...]uint64{h.Cluster, h.Server, h.UID, h.Receiver, h.KnownUID} {
		b = wire.AppendUint(b, v)
	}
	b = wire.AppendBytes(b, h.PeerAddress)
	return wire.AppendBytes(b, h.ClientAddress)
}

// decodeHello reads what append wrote. What a newer version has added is
// skipped, so that its sender can be told by name that it is too new.
func decodeHello(b []byte) (Hello, error) {
	r := wire.NewReader(b)
	version := r.Uint()
	if version > 1<<32-1 {
		r.Fail(fmt.Errorf("protocol version %d is over 32 bits", version))
	}
	h := Hello{Version: uint32(version)}
	for _, v := range [...]*uint64{&h.Cluster, &h.Server, &h.UID, &h.Receiver, &h.KnownUID} {
		*v = r.Uint()
	}
	h.PeerAddress, h.ClientAddress = r.String(), r.String()
	err := r.Err()
	if h.Version <= ProtocolVersion {
		err = r.Close()
	}
	if err == nil {
		err = h.check()
	}
	if err != nil {
		return Hello{}, fmt.Errorf("malformed introduction: %w", err)
	}
	return h, nil
}

// check reports what no server says of itself.
func (h Hello) check() error {
	switch {
	case h.Version == 0:
		return errors.New("protocol version 0: the first is 1")
	case h.Server == 0 || raft.IsLocalMsgTarget(h.Server):
		return fmt.Errorf("server id %d is reserved: use a number from 1 up", h.Server)
	}
	for _, address := range [...]string{h.PeerAddress, h.ClientAddress} {
		if err := checkText(address); err != nil {
			return fmt.Errorf("address %.64q %w", address, err)
		}
	}
	return nil
}

// checkText refuses what would not print on one line.
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

// differs reports whether two introductions under one server id come from two
// servers. A server that was restarted keeps both its UID and its address.
func (h Hello) differs(other Hello) bool {
	return h.UID != other.UID || h.PeerAddress != other.PeerAddress
}

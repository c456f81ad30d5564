// Package backup knows the file that `conclave snapshot save` writes: the state of
// a cluster at one moment, from which a new cluster can begin.
//
//	"CONCLAVE BACKUP\n"  16 bytes
//	version              1 byte
//	size                 8 bytes, big endian: of the whole file
//	header, state        see Header; the state as the registry encodes it
//	SHA-256              32 bytes, over all before
//
// # From a file to a cluster
//
// Restore puts the state into an empty data directory, as what a founder founds
// the cluster from. It is not yet the state of a server: whether the server is a
// founder it finds out as always, by asking the others. So a directory that is
// restored when the new cluster has gone on already does no harm. The server is
// taken back with an empty memory, as any that has lost its disk.
//
// All founders make the same state from the same file, and each by itself. It
// stands at a term and an index far above those of the file, so that raft ranks it
// above everything else that may be about: above the founding state of a server
// that started with an empty directory instead, and above what was left of the old
// cluster on some machine. Founders of which one was given another file, or another
// bound for fences, stand at different places for the same reason, and the highest
// wins.
package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/conclave-io/conclave/internal/wire"
	"github.com/conclave-io/conclave/service/registry"
)

const (
	magic = "CONCLAVE BACKUP\n"
	// formatVersion is raised with every change after which an older program would
	// misread the file.
	formatVersion = 1

	frontBytes = len(magic) + 1 + 8
	// MaxBytes is the largest file that is read.
	MaxBytes = 4 << 30
)

// How far a refounded state is ahead of the file, for each epoch that it is
// further: more than a cluster advances between a backup and its end.
const (
	termsPerEpoch   = 1 << 20
	entriesPerEpoch = 1 << 32
)

// Header says where a state is from.
type Header struct {
	// Cluster is the identity of the cluster, and Name its name.
	Cluster uint64
	Name    string
	// Server wrote the file, in Version, at Time by its wall clock, in ns since
	// 1970.
	Server  uint64
	Version string
	Time    int64
	// Stale says that the server answered from its own state, which may have
	// lagged.
	Stale bool
	// Index is the newest log entry that the state contains, and Term that of the
	// leader at the time.
	Index, Term uint64
}

// Backup is a file that was read.
type Backup struct {
	Header
	Registry *registry.Registry
	// Sum is the SHA-256 of the whole file, as sha256sum prints it; not the one inside it,
	// which is of what stands before.
	Sum [sha256.Size]byte
	// Size is that of the file, in bytes.
	Size int
}

// LongestTTL returns that of the sessions.
func (b *Backup) LongestTTL() (longest time.Duration) {
	b.Registry.Each(func(s registry.Session) { longest = max(longest, time.Duration(s.TTL)) })
	return longest
}

// Servers returns the ids of the servers that were on record and not removed.
func (b *Backup) Servers() []uint64 {
	ids := []uint64{}
	for _, m := range b.Registry.Members() {
		if m.Standing != registry.Removed {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// Encode returns the file of a state.
func Encode(h Header, state []byte) []byte { return slices.Concat(Parts(h, state)...) }

// Parts returns the file of a state in parts, of which one is the state itself: a large
// one is not copied.
func Parts(h Header, state []byte) [][]byte {
	body := wire.AppendUint(nil, h.Cluster)
	body = wire.AppendBytes(body, h.Name)
	body = wire.AppendUint(body, h.Server)
	body = wire.AppendBytes(body, h.Version)
	body = wire.AppendInt(body, h.Time)
	body = wire.AppendBool(body, h.Stale)
	body = wire.AppendUint(body, h.Index)
	body = wire.AppendUint(body, h.Term)
	body = wire.AppendUint(body, uint64(len(state))) // which follows
	size := frontBytes + len(body) + len(state) + sha256.Size

	front := append([]byte(magic), formatVersion)
	front = binary.BigEndian.AppendUint64(front, uint64(size))
	front = append(front, body...)
	sum := sha256.New()
	sum.Write(front)
	// Go's scheduler does not interrupt a checksum: a large one would keep a server from
	// everything else.
	for piece := range slices.Chunk(state, pieceBytes) {
		sum.Write(piece)
	}
	return [][]byte{front, state, sum.Sum(nil)}
}

// pieceBytes is what is added up at a time: some 100 us.
const pieceBytes = 128 << 10

// Decode reads the file that Encode wrote. Nothing is believed of one whose
// checksum does not fit.
func Decode(file []byte) (*Backup, error) {
	if err := checkFront(file); err != nil {
		return nil, err
	}
	end := len(file) - sha256.Size
	if sum := sha256.Sum256(file[:end]); !bytes.Equal(sum[:], file[end:]) {
		return nil, fmt.Errorf("it is damaged: its checksum is %x, its content gives %x", file[end:], sum)
	}
	b := &Backup{Sum: sha256.Sum256(file), Size: len(file)}
	rd := wire.NewReader(file[frontBytes:end])
	b.Cluster, b.Name, b.Server, b.Version = rd.Uint(), rd.String(), rd.Uint(), rd.String()
	b.Time, b.Stale, b.Index, b.Term = rd.Int(), rd.Bool(), rd.Uint(), rd.Uint()
	state := rd.Bytes()
	if err := rd.Close(); err != nil {
		return nil, fmt.Errorf("its header is unreadable: %w", err)
	}
	if b.Index == 0 || b.Term == 0 {
		return nil, errors.New("its header has no index or no term")
	}
	var err error
	if b.Registry, err = registry.Decode(state); err != nil {
		return nil, fmt.Errorf("its state is unreadable: %w", err)
	}
	return b, nil
}

func checkFront(file []byte) error {
	if !bytes.HasPrefix(file, []byte(magic)) {
		if len(file) > 0 && bytes.HasPrefix([]byte(magic), file) {
			return fmt.Errorf("it is cut off after %d bytes", len(file))
		}
		return errors.New("it is no backup: it does not begin like one")
	}
	if len(file) > len(magic) && file[len(magic)] != formatVersion {
		return fmt.Errorf("it has format version %d; this program reads version %d", file[len(magic)], formatVersion)
	}
	if len(file) < frontBytes {
		return fmt.Errorf("it is cut off after %d bytes", len(file))
	}
	size := binary.BigEndian.Uint64(file[len(magic)+1:])
	switch {
	case size < uint64(frontBytes+sha256.Size):
		return fmt.Errorf("it is damaged: it says that it has %d bytes", size)
	case uint64(len(file)) < size:
		return fmt.Errorf("it is cut off: of %d bytes it has %d", size, len(file))
	case uint64(len(file)) > size:
		return fmt.Errorf("it is damaged: it has %d bytes, and should have %d", len(file), size)
	}
	return nil
}

// refound turns a backup into that of the state from which a new cluster begins.
func (b *Backup) refound(above uint64) error {
	old := b.Registry.Epoch()
	if err := b.Registry.Refound(above); err != nil {
		return err
	}
	further := b.Registry.Epoch() - old
	b.Term += further * termsPerEpoch
	b.Index += further * entriesPerEpoch
	return nil
}

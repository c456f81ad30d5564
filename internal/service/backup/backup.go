// Package backup reads and writes the file of `conclave snapshot save`: the state of
// a cluster at one time, from which a new cluster can begin.
//
//	"CONCLAVE BACKUP\n"  16 bytes
//	version              1 byte
//	size                 8 bytes, big endian: of the whole file
//	header, state        see Header; the state as the registry encodes it
//	SHA-256              32 bytes, over all before
//
// # From a file to a cluster
//
// Restore puts the state into an empty data directory, as the state with which a founder
// founds the cluster. It is not yet the state of a server: as always, the server asks the
// others whether it is a founder. So restoring a directory after the new cluster has
// started does no harm: the server is taken back without data, like any server
// that has lost its disk.
//
// All founders compute the same state from the same file, each by itself. Its term and index
// are far above those in the file, so that raft ranks it above any other state: above the
// founding state of a server that started with an empty directory, and above remains of
// the old cluster on some machine. If the founders were given different files, or different
// bounds for fences, their states have different indices for the same reason, and the
// highest wins.
package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/conclave-io/conclave/internal/kit/outfile"
	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/store"
)

const (
	magic = "CONCLAVE BACKUP\n"
	// formatVersion is increased with every change after which an older program would
	// misread the file.
	formatVersion = 1

	frontBytes = len(magic) + 1 + 8
	// MaxBytes is the largest file that is read.
	MaxBytes = 4 << 30
)

// How far a refounded state is ahead of the file, for each epoch that it is ahead: more
// than a cluster advances between a backup and its end.
const (
	termsPerEpoch   = 1 << 20
	entriesPerEpoch = 1 << 32
)

// Header describes where a state comes from.
type Header struct {
	// Cluster is the identity of the cluster, and Name its name.
	Cluster uint64
	Name    string
	// Server is the server that wrote the file, with release Version, at Time by its wall clock,
	// in ns since 1970.
	Server  uint64
	Version string
	Time    int64
	// Stale means that the server used its own state, which may have lagged behind the
	// leader.
	Stale bool
	// Index is the newest log entry that the state contains, and Term that of the
	// leader at the time.
	Index, Term uint64
}

// Backup is the content of a file.
type Backup struct {
	Header
	Registry *registry.Registry
	// Sum is the SHA-256 of the whole file, as sha256sum prints it. The checksum inside the
	// file covers only the bytes before it.
	Sum [sha256.Size]byte
	// Size is the size of the file, in bytes.
	Size int

	name string // of the file, for errors
}

// LongestTTL returns the longest TTL of the sessions.
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

// Parts returns the file of a state in parts. One part is the state itself, so that a
// large state is not copied.
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
	// Go's scheduler does not interrupt the computation of a checksum: a large one would block
	// all other work of a server.
	for piece := range slices.Chunk(state, pieceBytes) {
		sum.Write(piece)
	}
	return [][]byte{front, state, sum.Sum(nil)}
}

// pieceBytes is how much is hashed at a time: about 100 us.
const pieceBytes = 128 << 10

// Decode reads the file that Encode wrote. It uses nothing of a file whose checksum does not
// match.
func Decode(file []byte) (*Backup, error) {
	if err := checkFront(file); err != nil {
		return nil, err
	}
	end := len(file) - sha256.Size
	if sum := sha256.Sum256(file[:end]); !bytes.Equal(sum[:], file[end:]) {
		return nil, fmt.Errorf("damaged: the checksum is %x, the content gives %x", file[end:], sum)
	}
	b := &Backup{Sum: sha256.Sum256(file), Size: len(file)}
	rd := wire.NewReader(file[frontBytes:end])
	b.Cluster, b.Name, b.Server, b.Version = rd.Uint(), rd.String(), rd.Uint(), rd.String()
	b.Time, b.Stale, b.Index, b.Term = rd.Int(), rd.Bool(), rd.Uint(), rd.Uint()
	state := rd.Bytes()
	if err := rd.Close(); err != nil {
		return nil, fmt.Errorf("unreadable header: %w", err)
	}
	if b.Index == 0 || b.Term == 0 {
		return nil, errors.New("header: missing index or term")
	}
	var err error
	if b.Registry, err = registry.Decode(state); err != nil {
		return nil, fmt.Errorf("unreadable state: %w", err)
	}
	return b, nil
}

func checkFront(file []byte) error {
	if !bytes.HasPrefix(file, []byte(magic)) {
		if len(file) > 0 && bytes.HasPrefix([]byte(magic), file) {
			return fmt.Errorf("truncated after %d bytes", len(file))
		}
		return errors.New("not a backup: must start with CONCLAVE BACKUP")
	}
	if len(file) > len(magic) && file[len(magic)] != formatVersion {
		return fmt.Errorf("format version %d: this program reads version %d", file[len(magic)], formatVersion)
	}
	if len(file) < frontBytes {
		return fmt.Errorf("truncated after %d bytes", len(file))
	}
	size := binary.BigEndian.Uint64(file[len(magic)+1:])
	switch {
	case size < uint64(frontBytes+sha256.Size):
		return fmt.Errorf("damaged: its size field is %d bytes", size)
	case uint64(len(file)) < size:
		return fmt.Errorf("truncated: has %d of %d bytes", len(file), size)
	case uint64(len(file)) > size:
		return fmt.Errorf("damaged: has %d bytes, expected %d", len(file), size)
	}
	return nil
}

// refound turns a backup into the state from which a new cluster begins.
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

// Write writes a file at path, like outfile.Write.
func Write(path string, file []byte) error {
	return outfile.Write(path, 0o600, func(w io.Writer) error {
		_, err := w.Write(file)
		return err
	})
}

// Read reads a file.
func Read(path string) (*Backup, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadFrom(path, f)
}

// ReadFrom reads a file that r has the content of. Errors call it name.
func ReadFrom(name string, r io.Reader) (*Backup, error) {
	file, err := io.ReadAll(io.LimitReader(r, MaxBytes))
	if err != nil {
		return nil, err
	}
	b, err := Decode(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	b.name = name
	return b, nil
}

// Restore puts the state of a file that was read into a data directory, which must be empty or new, for a
// server that founds a cluster. New fences are larger than all in the file, and larger than
// above, a fence that is known to have been given (0 if none is). The access rules of the backup
// are kept, or left out if withoutAccess is set. Afterwards, b is the resulting state.
func (b *Backup) Restore(dir string, above uint64, withoutAccess bool) error {
	if withoutAccess {
		b.Registry.ForgetRules()
	}
	if err := b.refound(above); err != nil {
		return fmt.Errorf("%s: %w", b.name, err)
	}
	return store.PutSeed(dir, Encode(b.Header, b.Registry.Freeze().Encode()))
}

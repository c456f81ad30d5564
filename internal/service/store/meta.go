package store

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// formatVersion is increased with every change after which an older program would
// misread the directory.
const formatVersion = 1

const metaName = "meta.json"

// Identity identifies the server that owns a directory.
type Identity struct {
	Cluster uint64
	Server  uint64
	// UID is the UID of the directory, if it was drawn before the directory was created;
	// if 0, Open draws it.
	UID uint64
}

// meta is the content of the meta file. Every segment of the log starts with the same bytes, so
// that a log cannot be moved to another directory by mistake.
type meta struct {
	Format  int
	Cluster uint64
	Server  uint64
	UID     uint64
}

// metaJSON has the wide numbers in hexadecimal, as everywhere else, because JSON readers
// would round them.
type metaJSON struct {
	Format  int    `json:"format"`
	Cluster string `json:"cluster"`
	Server  uint64 `json:"server"`
	UID     string `json:"uid"`
}

func newMeta(id Identity) meta {
	m := meta{Format: formatVersion, Cluster: id.Cluster, Server: id.Server, UID: id.UID}
	if m.UID == 0 {
		m.UID = drawUID()
	}
	return m
}

func drawUID() uint64 {
	var uid [8]byte
	rand.Read(uid[:]) // never fails: it ends the process instead
	return binary.BigEndian.Uint64(uid[:])
}

func (m meta) encode() []byte {
	return encoded(metaJSON{m.Format, hex(m.Cluster), m.Server, hex(m.UID)})
}

// encoded returns a struct of strings and numbers in JSON.
func encoded(content any) []byte {
	b, err := json.Marshal(content)
	if err != nil {
		panic(err) // it has nothing else
	}
	return b
}

// readJSON reads a file in JSON of the present format. It returns the text, too.
func readJSON(path string, content any) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := json.Unmarshal(b, content); err != nil {
		syntax, is := errors.AsType[*json.SyntaxError](err)
		if !is {
			return nil, &CorruptError{Path: path, Reason: err.Error()}
		}
		return nil, &CorruptError{Path: path, Offset: syntax.Offset, Reason: err.Error()}
	}
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(b, &version); err != nil || version.Format != formatVersion {
		return nil, &FormatError{Path: path, Have: uint64(version.Format), Want: formatVersion}
	}
	return b, nil
}

func hex(n uint64) string { return fmt.Sprintf("%016x", n) }

// ClusterError means that the directory belongs to another cluster.
type ClusterError struct {
	Dir        string
	Have, Want uint64
}

func (e *ClusterError) Error() string {
	return fmt.Sprintf("store: data directory %s belongs to cluster %016x, not to %016x; use another directory, or the peers it was created with", e.Dir, e.Have, e.Want)
}

// ServerError means that the directory belongs to another server of the
// cluster.
type ServerError struct {
	Dir        string
	Have, Want uint64
}

func (e *ServerError) Error() string {
	return fmt.Sprintf("store: data directory %s belongs to server %d, not to server %d; each server needs a directory of its own", e.Dir, e.Have, e.Want)
}

// FormatError means that a newer program wrote the file.
type FormatError struct {
	Path       string
	Have, Want uint64
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("store: %s has format version %d; this program reads version %d", e.Path, e.Have, e.Want)
}

// DirectoryError means that a directory cannot serve as the data directory of this
// server.
type DirectoryError struct{ Dir, Reason string }

func (e *DirectoryError) Error() string {
	return fmt.Sprintf("store: data directory %s %s", e.Dir, e.Reason)
}

// LockedError means that another process uses the directory.
type LockedError struct {
	Dir string
	PID int // 0 when the holder has not written it yet
}

func (e *LockedError) Error() string {
	holder := "another process"
	if e.PID != 0 {
		holder = "process " + strconv.Itoa(e.PID)
	}
	return fmt.Sprintf("store: data directory %s is in use by %s; stop it, or use another directory", e.Dir, holder)
}

func (m meta) check(dir string, id Identity) error {
	switch {
	case m.Cluster != id.Cluster:
		return &ClusterError{Dir: dir, Have: m.Cluster, Want: id.Cluster}
	case m.Server != id.Server:
		return &ServerError{Dir: dir, Have: m.Server, Want: id.Server}
	case id.UID != 0 && m.UID != id.UID:
		return &DirectoryError{dir, fmt.Sprintf("has the uid %016x in %s and %016x in %s; files of two directories were mixed", m.UID, metaName, id.UID, joinName)}
	}
	return nil
}

func readMeta(dir string) (meta, error) {
	path := filepath.Join(dir, metaName)
	var j metaJSON
	b, err := readJSON(path, &j)
	if err != nil {
		return meta{}, err
	}
	cluster, err1 := strconv.ParseUint(j.Cluster, 16, 64)
	uid, err2 := strconv.ParseUint(j.UID, 16, 64)
	m := meta{Format: j.Format, Cluster: cluster, Server: j.Server, UID: uid}
	if err := errors.Join(err1, err2); err != nil || !bytes.Equal(bytes.TrimSpace(b), m.encode()) {
		return meta{}, &CorruptError{Path: path, Reason: "it was edited; its content must be exactly as this program wrote it"}
	}
	return m, nil
}

func writeMeta(dir string, m meta) error { return replace(filepath.Join(dir, metaName), m.encode()) }

// replace writes a small file atomically: whenever the machine stops, the file has either the
// complete old content or the complete new one.
func replace(path string, content []byte) error { return replaceExactly(path, append(content, '\n')) }

func replaceExactly(path string, content []byte) error {
	f, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err == nil {
		err = syncDirectory(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("store: write %s: %w", path, err)
	}
	return nil
}

// makeDirectory creates a directory with missing parents, durably: a name in a folder that was
// not synced may be lost in a crash, with everything below it. It syncs the parents even if they
// exist, as long as the directory is not complete, since an earlier process may have been
// killed in between.
func makeDirectory(dir string) error {
	if complete, err := exists(filepath.Join(dir, metaName)); complete || err != nil {
		return err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for above := filepath.Dir(dir); ; above = filepath.Dir(above) {
		// A folder that may not be read existed before.
		if err := syncDirectory(above); err != nil && !errors.Is(err, os.ErrPermission) {
			return err
		}
		if above == filepath.Dir(above) {
			return nil
		}
	}
}

// exists reports whether a file exists. After an error the caller must not assume that it does
// not, and start with an empty directory although there is data.
func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func syncDirectory(dir string) error {
	d, err := fileutil.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(fileutil.Fsync(d), d.Close())
}

// holder returns the process that has locked a directory, or 0 if that cannot be read.
func holder(path string) int {
	b, _ := os.ReadFile(path) // an unreadable name is no name
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

// takeDirectory creates a directory if necessary, and locks it. It refuses one that is not ours.
func takeDirectory(dir string) (*fileutil.LockedFile, error) {
	if err := checkOurs(dir); err != nil {
		return nil, err
	}
	if err := makeDirectory(dir); err != nil {
		return nil, fmt.Errorf("store: create data directory: %w", err)
	}
	return lockDirectory(dir)
}

// lockDirectory locks the directory for this process and writes down its id. The kernel
// releases the lock when the process ends, for whatever reason.
func lockDirectory(dir string) (*fileutil.LockedFile, error) {
	path := filepath.Join(dir, "LOCK")
	var lock *fileutil.LockedFile
	take := func() (err error) {
		lock, err = fileutil.TryLockFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		return err
	}
	err := take()
	if errors.Is(err, fileutil.ErrLocked) && holder(path) == os.Getpid() {
		err = unlessForked(take)
	}
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, &LockedError{Dir: dir, PID: holder(path)}
	}
	if err != nil {
		return nil, fmt.Errorf("store: lock data directory: %w", err)
	}
	err = lock.Truncate(0)
	if err == nil {
		_, err = lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store: lock data directory: %w", err), lock.Close())
	}
	return lock, nil
}

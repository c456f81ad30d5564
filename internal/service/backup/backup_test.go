package backup

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/store"
)

var header = Header{
	Cluster: 0xc1, Name: "main", Server: 2, Version: "v1", Time: 1795245235451414000, Index: 4711, Term: 12,
}

// state is that of a cluster with one session that holds one lock.
func state(t testing.TB) *registry.Registry {
	t.Helper()
	r, fx := registry.New(), new(registry.Effects)
	id := registry.SessionID{1}
	r.Apply(1, &registry.Batch{Time: 1, Commands: []registry.Command{
		{Op: registry.OpMember, Member: &registry.Member{ID: 3, UID: 33}},
		{Op: registry.OpOpen, Session: id, Sequence: 1, TTL: int64(20 * time.Second)},
		{Op: registry.OpAcquire, Session: id, Sequence: 2, Name: "a"},
	}}, fx)
	if c := r.Counts(); c.Locks != 1 {
		t.Fatalf("the state has %+v", c)
	}
	return r
}

func fileOf(t testing.TB) []byte { return Encode(header, state(t).Freeze().Encode()) }

func TestWhatIsEncodedIsDecoded(t *testing.T) {
	file := fileOf(t)
	b, err := Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(header, b.Header); diff != "" {
		t.Error(diff)
	}
	if string(b.Registry.Freeze().Encode()) != string(state(t).Freeze().Encode()) || b.Size != len(file) {
		t.Error("the state is another")
	}
	if b.Sum != sha256.Sum256(file) {
		t.Error("the sum is not that of the file")
	}
	if b.LongestTTL() != 20*time.Second || !cmp.Equal(b.Servers(), []uint64{3}) {
		t.Errorf("the longest TTL is %v, the servers are %v", b.LongestTTL(), b.Servers())
	}
}

func TestDamageIsFound(t *testing.T) {
	file := fileOf(t)
	for i := range 8 * len(file) {
		bad := append([]byte(nil), file...)
		bad[i/8] ^= 1 << (i % 8)
		if _, err := Decode(bad); err == nil {
			t.Fatalf("bit %d of byte %d flipped, and nobody noticed", i%8, i/8)
		}
	}
	for n := range file {
		if _, err := Decode(file[:n]); err == nil {
			t.Fatalf("cut off after %d of %d bytes, and nobody noticed", n, len(file))
		}
	}
}

func TestEachDamageHasItsLine(t *testing.T) {
	file := fileOf(t)
	changed := func(at int, to byte) []byte {
		bad := append([]byte(nil), file...)
		bad[at] = to
		return bad
	}
	short := append([]byte(nil), file...)
	binary.BigEndian.PutUint64(short[len(magic)+1:], 3)
	for want, bad := range map[string][]byte{
		"not a backup: must start with":                       []byte("apiVersion: 1\n"),
		"not a backup: must start with ":                      nil,
		"truncated after 5 bytes":                             file[:5],
		"truncated after 20 bytes":                            file[:20],
		"truncated: has 90 of " + size(file) + " bytes":       file[:90],
		"format version 9: this program reads version 1":      changed(len(magic), 9),
		"damaged: its size field is 3 bytes":                  short,
		"bytes, expected " + size(file):                       append(changed(0, magic[0]), 0),
		"damaged: the checksum is":                            changed(60, file[60]+1),
		"header: missing index":                               Encode(Header{}, state(t).Freeze().Encode()),
		"unreadable state: snapshot: format 99: this release": Encode(header, []byte{99}),
	} {
		_, err := Decode(bad)
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) || strings.Contains(err.Error(), "\n") {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
}

func size(file []byte) string { return string(appendInt(nil, len(file))) }

func appendInt(b []byte, n int) []byte {
	if n >= 10 {
		b = appendInt(b, n/10)
	}
	return append(b, byte('0'+n%10))
}

func write(t *testing.T, file []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup")
	if err := Write(path, file); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWriteReplacesAndLeavesNothingBehind(t *testing.T) {
	path := write(t, []byte("old"))
	if err := Write(path, fileOf(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err != nil {
		t.Error(err)
	}
	if err := Write(filepath.Join(path, "x"), nil); err == nil {
		t.Error("a file in a file")
	}
	// A directory cannot be replaced by a file.
	if err := os.Mkdir(filepath.Join(filepath.Dir(path), "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(filepath.Dir(path), "dir"), nil); err == nil {
		t.Error("a directory was replaced")
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 2 {
		t.Errorf("it left %v (%v)", left, err)
	}
}

func restore(path, dir string, above uint64, withoutAccess bool) (*Backup, error) {
	b, err := Read(path)
	if err != nil {
		return nil, err
	}
	return b, b.Restore(dir, above, withoutAccess)
}

func TestRestore(t *testing.T) {
	path, dir := write(t, fileOf(t)), filepath.Join(t.TempDir(), "deep", "data")
	made, err := restore(path, dir, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	s, disk, err := store.Open(dir, store.Identity{Cluster: 1, Server: 1}, slog.New(slog.DiscardHandler))
	if err != nil || !disk.Seeded || !disk.Fresh {
		t.Fatal(disk, err)
	}
	defer s.Close()
	seed, err := s.Seed()
	if err != nil {
		t.Fatal(err)
	}
	found, err := Decode(seed)
	if err != nil {
		t.Fatal(err)
	}
	if string(found.Registry.Freeze().Encode()) != string(made.Registry.Freeze().Encode()) || !cmp.Equal(found.Header, made.Header) {
		t.Error("what was restored is not what is found")
	}
	if c := found.Registry.Counts(); c.Sessions != 0 || c.Locks != 0 || c.Fence <= state(t).Counts().Fence {
		t.Errorf("it has %+v", c)
	}
}

// A founder whose state has a higher bound for fences is also ahead in the log. So the
// others take its state, and no two servers have different states at one index.
func TestHigherFencesStandHigherInTheLog(t *testing.T) {
	path := write(t, fileOf(t))
	var last Header
	for i, above := range []uint64{0, 50 << 40, 51 << 40} {
		b, err := restore(path, filepath.Join(t.TempDir(), "data"), above, false)
		if err != nil {
			t.Fatal(err)
		}
		if b.Index < last.Index+entriesPerEpoch || b.Term < last.Term+termsPerEpoch || b.Index <= header.Index || b.Term <= header.Term {
			t.Errorf("state %d stands at index %d of term %d, the one before at %d of %d", i, b.Index, b.Term, last.Index, last.Term)
		}
		last = b.Header
	}
}

func TestRestoreRefuses(t *testing.T) {
	good := write(t, fileOf(t))
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]struct {
		path, dir string
		above     uint64
	}{
		"no such file":                    {filepath.Join(full, "none"), "x", 0},
		`is not empty: it has "precious"`: {good, full, 0},
		"no epoch is left above":          {good, "x", 1<<63 - 1},
		"truncated":                       {write(t, fileOf(t)[:100]), "x", 0},
		"data directory: ":                {good, good, 0},
		"not a directory":                 {good, filepath.Join(good, "x"), 0},
	} {
		_, err := restore(c.path, c.dir, c.above, false)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
	if _, err := os.Stat("x"); !errors.Is(err, os.ErrNotExist) {
		t.Error("a restore that failed left a directory")
	}
}

// Twice into one directory would be to set back a server that has run.
func TestRestoreOnce(t *testing.T) {
	path, dir := write(t, fileOf(t)), t.TempDir()
	if _, err := restore(path, dir, 0, false); err != nil {
		t.Fatal(err)
	}
	if _, err := restore(path, dir, 0, false); err == nil || !strings.Contains(err.Error(), `is not empty: it has "snap"`) {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(fileOf(f))
	f.Add(Encode(header, nil))
	f.Fuzz(func(t *testing.T, file []byte) {
		b, err := Decode(file)
		if err != nil {
			return
		}
		if again := Encode(b.Header, b.Registry.Freeze().Encode()); len(again) > len(file) {
			t.Errorf("%d bytes became %d", len(file), len(again))
		}
	})
}

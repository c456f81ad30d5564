package auditlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/audit"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// acts is a node whose audit trail grows by the acts of a test.
type acts struct {
	metrics node.Metrics
	mu      sync.Mutex
	trail   registry.Trail
	changed chan struct{}
}

func (a *acts) Trail() (registry.Trail, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.trail, a.changed
}

func (a *acts) View(context.Context, func(*replica.Replica)) error { return errors.New("no replica") }

func (a *acts) Metrics() *node.Metrics { return &a.metrics }

// add adds the record of an act.
func (a *acts) add(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trail.Numbered++
	rec := &registry.Record{Number: a.trail.Numbered, Kind: "revoke", Name: name, Count: 1}
	before := a.trail.Acts.Before
	if n := len(a.trail.Acts.Records); n > 0 {
		before = a.trail.Acts.Records[n-1].Hash
	}
	rec.Hash = rec.Chained(before)
	a.trail.Acts.Records = append(a.trail.Acts.Records, rec)
	close(a.changed)
	a.changed = make(chan struct{})
}

// kept is an audit log in a directory of a test.
type kept struct {
	*testing.T
	*acts
	log  *Log
	path string
	stop func() // stops the log and waits until it has written everything
}

func start(t *testing.T, nodes *acts, path string) *kept {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	k := &kept{T: t, acts: nodes, path: path}
	k.log = Start(ctx, Config{
		Server: 1, Version: "test", Path: path, Required: true, AnchorEvery: time.Hour, Node: nodes, Log: slog.New(slog.DiscardHandler),
		Newest: func(_ context.Context, after uint64) (uint64, error) { return after, nil },
	})
	k.stop = sync.OnceFunc(func() {
		cancel()
		k.log.Wait()
	})
	t.Cleanup(k.stop)
	return k
}

func newLog(t *testing.T) *kept {
	return start(t, &acts{changed: make(chan struct{})}, filepath.Join(t.TempDir(), "audit.log"))
}

// until waits until something holds.
func (k *kept) until(what string, holds func() bool) {
	k.Helper()
	for began := time.Now(); !holds(); time.Sleep(time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			k.Fatalf("not %s:\n%s", what, k.text(k.path))
		}
	}
}

// has waits until the file contains a text.
func (k *kept) has(text string) {
	k.Helper()
	k.until("in the file: "+text, func() bool { return strings.Contains(k.text(k.path), text) })
}

func (k *kept) text(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// verify checks the lines of files, and how many of them are acts.
func (k *kept) verify(want int, files ...string) {
	k.Helper()
	v, found := audit.NewVerifier(), 0
	for _, name := range files {
		for line := range bytes.Lines([]byte(k.text(name))) {
			v.Line(name, line)
			if bytes.Contains(line, []byte(`"chain":"acts"`)) {
				found++
			}
		}
	}
	if len(v.Problems) > 0 || found != want {
		k.Errorf("%d acts, want %d; problems %v", found, want, v.Problems)
	}
}

func (k *kept) private(path string) {
	k.Helper()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		k.Errorf("%s: %v, %v", path, info.Mode(), err)
	}
}

// TestAppend: a server that restarts continues its file behind the last complete line, and writes the acts
// that it missed. Only its own account can read the file.
func TestAppend(t *testing.T) {
	t.Parallel()
	k := newLog(t)
	k.add("a")
	k.has(`"name":"a"`)
	k.stop()
	k.private(k.path)
	first := k.text(k.path)
	if k.log.Lines() != int64(strings.Count(first, "\n")) || k.log.Failures() != 0 || k.log.Newest() == 0 {
		t.Errorf("%d lines and %d failures, the newest at %d:\n%s", k.log.Lines(), k.log.Failures(), k.log.Newest(), first)
	}

	if err := os.WriteFile(k.path, []byte(first+`{"v":1,"chain":"acts","num`), 0o644); err != nil { // a crash in a line
		t.Fatal(err)
	}
	if err := os.Chmod(k.path, 0o644); err != nil {
		t.Fatal(err)
	}
	k.add("b")
	again := start(t, k.acts, k.path)
	again.has(`"name":"b"`)
	again.stop()
	if text := k.text(k.path); !strings.HasPrefix(text, first+`{"v":1`) || strings.Contains(text, `"num{`) {
		t.Errorf("after the first start:\n%s\nafter the second:\n%s", first, text)
	}
	again.private(k.path)
	again.verify(2, k.path)
}

// TestRotation: after a rename and Reopen, the lines continue in a new file, and none is lost.
func TestRotation(t *testing.T) {
	t.Parallel()
	k := newLog(t)
	k.add("a")
	k.has(`"name":"a"`)
	old := k.path + ".1"
	if err := os.Rename(k.path, old); err != nil {
		t.Fatal(err)
	}
	k.log.Reopen()
	k.until("a new file", func() bool { _, err := os.Stat(k.path); return err == nil })
	k.add("b")
	k.has(`"name":"b"`)
	k.stop()
	k.private(k.path)
	k.verify(2, old, k.path)
	if text := k.text(k.path); strings.Contains(text, audit.KindFile) {
		t.Errorf("a rotation is reported as a loss:\n%s", text)
	}
}

// TestTakenAway: a file that was moved, replaced or cut without Reopen is reported in the file that
// follows, and the lines continue there.
func TestTakenAway(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		do     func(path string) error
		report string
		old    bool // the lines before are in another file
	}{
		"moved": {func(path string) error { return os.Rename(path, path+".1") }, "was taken away", true},
		"replaced": {func(path string) error {
			return errors.Join(os.Rename(path, path+".1"), os.WriteFile(path, nil, 0o666))
		}, "was taken away", true},
		"cut": {func(path string) error { return os.Truncate(path, 0) }, "were cut off", false},
	} {
		t.Run(what, func(t *testing.T) {
			k := newLog(t)
			k.add("a")
			k.has(`"name":"a"`)
			if err := test.do(k.path); err != nil {
				t.Fatal(err)
			}
			k.add("b")
			k.has(`"name":"b"`)
			k.has(test.report)
			k.stop()
			k.private(k.path)
			if test.old {
				k.verify(2, k.path+".1", k.path)
			}
		})
	}
}

// TestUnwritable: while the file cannot be opened, the server says so and accepts no audited acts.
// Afterwards the file gets all acts.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "missing")
	k := start(t, &acts{changed: make(chan struct{})}, filepath.Join(dir, "audit.log"))
	for i := range 3 {
		k.add(fmt.Sprint("a", i))
	}
	k.until("refusing", func() bool { return k.log.Unwritable() != "" })
	if k.log.Failures() == 0 || k.log.Lines() != 0 {
		t.Errorf("%d failures, %d lines", k.log.Failures(), k.log.Lines())
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	k.has(`"name":"a2"`)
	k.until("accepting", func() bool { return k.log.Unwritable() == "" })
	k.stop()
	k.verify(3, k.path)
}

// TestDamaged: a file whose last line is not of an audit log is left alone.
func TestDamaged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	const text = `{"v":1,"chain":"acts" and no more` + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	k := start(t, &acts{changed: make(chan struct{})}, path)
	k.until("refusing", func() bool { return k.log.Unwritable() != "" })
	k.stop()
	if got := k.text(path); got != text {
		t.Errorf("the file is now\n%s", got)
	}
}

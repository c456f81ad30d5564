package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/service/founding"
)

func TestRecordIsKept(t *testing.T) {
	dir := t.TempDir()
	s, state := mustOpen(t, dir)
	if state.Record != nil {
		t.Errorf("a new directory has the record %v", state.Record)
	}
	record := founding.Record{{ID: 1, UID: 1<<64 - 1}, {ID: 3, UID: 7}}
	if err := errors.Join(s.SaveRecord(record), s.SaveRecord(record)); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveRecord(founding.Record{{ID: 1, UID: 1}, {ID: 3, UID: 7}}); err == nil || !strings.Contains(err.Error(), "already has a different one") {
		t.Errorf("a second record: %v", err)
	}
	mustClose(t, s)
	s, state = mustOpen(t, dir)
	mustClose(t, s)
	if !state.Fresh || !state.Record.Equal(record) {
		t.Errorf("the directory holds %+v, want the record %v and nothing else", state, record)
	}
}

// TestUnreadableRecordIsNotAbsent: a server that cannot read its record must not
// take itself for a new one.
func TestUnreadableRecordIsNotAbsent(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	if err := s.SaveRecord(founding.Record{{ID: 1, UID: 0xabc}, {ID: 2, UID: 7}}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	path := filepath.Join(dir, foundingName)
	good := string(readFile(t, path))
	for _, c := range []struct{ from, to, want string }{
		{`"format":1`, `"format":7`, "has format version 7; this program reads version 1"},
		{`0000000000000abc`, `x`, "server 1: missing uid"},
		{`"server":2`, `"server":1`, "must be positive and ascending"},
		{`}`, ``, "is corrupt at byte"},
		{good, `{"format":1}`, "0 servers: must be 1 to"},
	} {
		writeFile(t, path, []byte(strings.Replace(good, c.from, c.to, 1)))
		if _, _, err := Open(dir, testID, quiet); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s became %s: %v, want one line that says %q", c.from, c.to, err, c.want)
		}
	}
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(dir, testID, quiet); err == nil {
		t.Error("a record that cannot be read is taken for none")
	}
}

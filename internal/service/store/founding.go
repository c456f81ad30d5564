package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/conclave-io/conclave/internal/service/founding"
)

const foundingName = "founding.json"

// foundingJSON is the content of the founding file.
type foundingJSON struct {
	Format   int           `json:"format"`
	Founders []founderJSON `json:"founders"`
}

type founderJSON struct {
	Server uint64 `json:"server"`
	UID    string `json:"uid"`
}

// SaveRecord writes the founding record to the disk. It is durable when SaveRecord returns. A
// directory has one record forever: a different second one is an error.
func (s *Store) SaveRecord(record founding.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, err := readFounding(s.dir)
	switch {
	case err != nil:
		return err
	case known != nil && !known.Equal(record):
		return fmt.Errorf("store: founding record %v: %s already has a different one, %v", record, s.dir, known)
	}
	j := foundingJSON{Format: formatVersion}
	for _, f := range record {
		j.Founders = append(j.Founders, founderJSON{f.ID, hex(f.UID)})
	}
	return replace(filepath.Join(s.dir, foundingName), encoded(j))
}

// readFounding returns nil if there is no record, and an error if a record cannot be
// read.
func readFounding(dir string) (founding.Record, error) {
	path := filepath.Join(dir, foundingName)
	var j foundingJSON
	if _, err := readJSON(path, &j); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var record founding.Record
	for _, f := range j.Founders {
		uid, err := strconv.ParseUint(f.UID, 16, 64)
		if err != nil {
			uid = 0
		}
		record = append(record, founding.Founder{ID: f.Server, UID: uid})
	}
	if err := record.Check(); err != nil {
		return nil, &CorruptError{Path: path, Reason: "it was edited; its content must be as this program wrote it: " + err.Error()}
	}
	return record, nil
}

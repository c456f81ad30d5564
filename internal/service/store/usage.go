package store

import (
	"io/fs"
	"path/filepath"
	"strings"
)

// Usage returns the size of the files in a data directory, and of the log and the snapshots
// among them, in bytes. Files that come or go meanwhile may be counted or not.
func Usage(dir string) (all, log, snapshots int64) {
	inLog := filepath.Join(dir, "wal") + string(filepath.Separator)
	inSnapshots := filepath.Join(dir, "snap") + string(filepath.Separator)
	// Files that cannot be read, or are gone by now, do not count.
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		all += info.Size()
		if strings.HasPrefix(path, inLog) {
			log += info.Size()
		}
		if strings.HasPrefix(path, inSnapshots) {
			snapshots += info.Size()
		}
		return nil
	})
	return all, log, snapshots
}

package store

import (
	"io/fs"
	"path/filepath"
	"strings"
)

// Usage returns how many bytes the files of a data directory have, and those of the log and
// of the snapshots among them. What comes or goes meanwhile may be counted or not.
func Usage(dir string) (all, log, snapshots int64) {
	inLog := filepath.Join(dir, "wal") + string(filepath.Separator)
	inSnapshots := filepath.Join(dir, "snap") + string(filepath.Separator)
	// What cannot be read, or is gone by now, counts nothing.
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

package metrics

import "golang.org/x/sys/unix"

// fileSystem returns how many bytes a process without privileges can still write to the
// file system of a directory, and how many it has in all.
func fileSystem(dir string) (free, size int64) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, 0
	}
	return int64(s.Bavail) * s.Bsize, int64(s.Blocks) * s.Bsize
}

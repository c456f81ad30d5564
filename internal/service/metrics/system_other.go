//go:build !linux

package metrics

// fileSystem returns 0: the figures are not known on this system.
func fileSystem(string) (free, size int64) { return 0, 0 }

// Package hungdisk tests servers whose disk hangs without an error: three real
// processes, each with its data directory on a FUSE file system of the test. That
// takes Linux, /dev/fuse and root. The library is needed by nothing else, so the
// tests are in this module. Run them with make long-disk.
package hungdisk

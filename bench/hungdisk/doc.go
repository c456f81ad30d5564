// Package hungdisk tests servers whose disk hangs without an error. The servers are three real
// processes. The data directory of each is on a FUSE file system of the test. The tests need Linux,
// /dev/fuse and root. They are in this module because nothing else needs the FUSE library. Run them
// with make long-disk.
package hungdisk

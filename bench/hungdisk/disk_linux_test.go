package hungdisk

import (
	"context"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// disk is a FUSE file system in this process. It forwards all operations to a directory. While it
// hangs, writes and fsyncs do not return: neither with an error nor on a signal. A disk whose
// driver waits behaves in the same way.
type disk struct {
	mu    sync.Mutex
	gate  chan struct{} // closed unless the disk hangs
	delay time.Duration // that each write and fsync takes
	lives int           // how often the disk has lost its power
}

// mount mounts a disk at a path. It skips the test if the system does not allow it.
func mount(t *testing.T, path string) *disk {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	loop, err := fs.NewLoopbackRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{gate: make(chan struct{})}
	close(d.gate)
	options := &fs.Options{MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "hungdisk", Name: "hungdisk"}}
	server, err := fs.Mount(path, &node{loop.(*fs.LoopbackNode), d}, options)
	if err != nil {
		t.Skipf("a FUSE file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		d.release()
		if err := server.Unmount(); err != nil {
			t.Errorf("unmount %s: %v", path, err)
		}
	})
	return d
}

func (d *disk) hang() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gate = make(chan struct{})
}

func (d *disk) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.gate:
	default:
		close(d.gate)
	}
}

// slow makes each write and each fsync take so long.
func (d *disk) slow(delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.delay = delay
}

// lose loses what is being written, as in a power failure.
func (d *disk) lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lives++
}

// pass waits until the disk is ready. It fails if the disk loses its power meanwhile.
func (d *disk) pass() syscall.Errno {
	d.mu.Lock()
	gate, delay, life := d.gate, d.delay, d.lives
	d.mu.Unlock()
	<-gate
	time.Sleep(delay)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lives != life {
		return syscall.EIO
	}
	return fs.OK
}

type node struct {
	*fs.LoopbackNode
	disk *disk
}

func (n *node) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{child.(*fs.LoopbackNode), n.disk}
}

func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	f, opened, errno := n.LoopbackNode.Open(ctx, flags)
	return n.wrap(f), opened, errno
}

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	inode, f, opened, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	return inode, n.wrap(f), opened, errno
}

func (n *node) wrap(f fs.FileHandle) fs.FileHandle {
	if f == nil {
		return nil
	}
	return &file{f.(*fs.LoopbackFile), n.disk}
}

type file struct {
	*fs.LoopbackFile
	disk *disk
}

// PassthroughFd prevents the kernel from writing to the directory directly.
func (f *file) PassthroughFd() (int, bool) { return 0, false }

func (f *file) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	if errno := f.disk.pass(); errno != fs.OK {
		return 0, errno
	}
	return f.LoopbackFile.Write(ctx, data, off)
}

func (f *file) Writev(ctx context.Context, data [][]byte, off int64) (uint32, syscall.Errno) {
	if errno := f.disk.pass(); errno != fs.OK {
		return 0, errno
	}
	return f.LoopbackFile.Writev(ctx, data, off)
}

func (f *file) Fsync(ctx context.Context, flags uint32) syscall.Errno {
	if errno := f.disk.pass(); errno != fs.OK {
		return errno
	}
	return f.LoopbackFile.Fsync(ctx, flags)
}

package attack

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
	"github.com/conclave-io/conclave/internal/service/store"
)

// lostEnd cuts off the end of the log of a single server. One log is from a stopped server. The
// other is a copy from a running server, like after a kill. The tests of internal/service/store do this at
// every byte.
func lostEnd(w *world) {
	// The data directory is copied while the server runs. A socket cannot be copied, so it is
	// elsewhere.
	socket := filepath.Join(w.TempDir(), "admin.sock")
	g := &target{cluster: servertest.Start(w.T, 1, func(cfg *config.Server) { cfg.AdminSocket = socket }), log: new(journal)}
	w = &world{T: w.T, target: g, prefix: w.prefix}
	client := w.reach()
	data := g.cluster.Config(1).Data
	for range 10 {
		w.fence(client)
	}
	from := w.written(data)

	// The server writes the end of its log to a file once a second. When it has written the file
	// again, the file covers all earlier grants.
	killed := filepath.Join(w.TempDir(), "killed")
	var covered, newest uint64
	for begun := time.Now(); ; {
		before := readFile(w, filepath.Join(data, "reached"))
		covered = newest
		newest = w.fence(client)
		if covered > 0 && !bytes.Equal(readFile(w, filepath.Join(data, "reached")), before) {
			break
		}
		if time.Since(begun) > testTimeout {
			w.Fatal("the file reached is not written")
		}
	}
	later := w.written(data)
	for range 5 {
		newest = w.fence(client)
	}
	w.copyDir(data, killed)
	w.damage(killed, covered, append(spread(from, later, 3), spread(later, w.written(killed), 4)...))
	if err := client.Close(); err != nil {
		w.Error(err)
	}
	g.cluster.Stop(1)
	w.damage(data, newest, spread(from, w.written(data), 6))
}

// spread returns n offsets between from and to, including from.
func spread(from, to, n int) (offsets []int) {
	for i := range n {
		offsets = append(offsets, from+(to-from)*i/n)
	}
	return offsets
}

// written returns the length of a log without the space that was allocated in advance.
func (w *world) written(data string) int {
	w.Helper()
	return len(bytes.TrimRight(readFile(w, segment(w, data)), "\x00"))
}

// damage starts a server on copies of a directory. The log of each copy ends at one of the offsets,
// or is complete. The server must refuse to start, or grant fences above all covered ones.
func (w *world) damage(data string, covered uint64, offsets []int) {
	w.Helper()
	whole, to := readFile(w, segment(w, data)), w.written(data)
	refused, served := 0, 0
	for _, at := range append(offsets, to) {
		zeroed := bytes.Clone(whole)
		clear(zeroed[at:])
		for what, log := range map[string][]byte{"cut": whole[:at], "zeroed": zeroed} {
			copied := filepath.Join(w.TempDir(), "data")
			w.copyDir(data, copied)
			if err := os.WriteFile(segment(w, copied), log, 0o600); err != nil {
				w.Fatal(err)
			}
			switch next, err := w.startOn(copied); {
			case err != nil:
				if refused++; !errors.As(err, new(*store.CorruptError)) {
					w.Errorf("a log of %d bytes, %s at %d: %v; want a refusal that says what is damaged", to, what, at, err)
				}
			case next <= covered:
				w.Errorf("a log of %d bytes, %s at %d: the next fence is %d, but %d was granted before", to, what, at, next, covered)
			default:
				served++
			}
		}
	}
	if w.Logf("%d refused, %d served", refused, served); refused == 0 || served == 0 {
		w.Errorf("%d are refused and %d served, want some of both", refused, served)
	}
}

// startOn starts a server on a directory and returns the next fence that it grants.
func (w *world) startOn(data string) (fence uint64, err error) {
	w.Helper()
	cfg := w.cluster.Config(1)
	cfg.Data, cfg.Listen, cfg.PeerListen = data, "127.0.0.1:0", "127.0.0.1:0"
	cfg.AdminSocket = filepath.Join(w.TempDir(), "admin.sock")
	s, err := server.Start(cfg)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err := s.Stop(w.within()); err != nil {
			w.Error(err)
		}
	}()
	client := w.reach(s.Addr().String())
	defer client.Close()
	return w.fence(client), nil
}

// reach returns a client of the given servers. Without servers, it returns a client of the cluster.
func (w *world) reach(servers ...string) *conclave.Client {
	w.Helper()
	if len(servers) == 0 {
		servers = w.cluster.Addresses()
	}
	client, err := conclave.Dial(w.within(), conclave.Config{Servers: servers})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { client.Close() })
	return client
}

// fence takes a lock with a new name, releases it, and returns its fence.
func (w *world) fence(client *conclave.Client) uint64 {
	w.Helper()
	lock, err := client.Lock(w.within(), fmt.Sprintf("%slock-%x", w.prefix, newSecret()))
	if err != nil {
		w.Fatal(err)
	}
	fence, err := lock.Fence()
	if err != nil {
		w.Fatal(err)
	}
	if err := lock.Unlock(w.within()); err != nil {
		w.Fatal(err)
	}
	return fence
}

// segment returns the path of the only log file.
func segment(w *world, data string) string {
	w.Helper()
	found, err := filepath.Glob(filepath.Join(data, "wal", "*.wal"))
	if err != nil || len(found) != 1 {
		w.Fatalf("the log is %q, %v; want one file", found, err)
	}
	return found[0]
}

func (w *world) copyDir(from, to string) {
	w.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		w.Fatal(err)
	}
}

func readFile(w *world, path string) []byte {
	w.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.Fatal(err)
	}
	return b
}

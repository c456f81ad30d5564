package store

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

var crashes = flag.Int("crashes", 8, "how many seeds TestCrash plays")

const (
	// generations is the number of processes, each of which starts on what the previous
	// one left.
	generations = 6
	// inside is where the data directory is, in folders that the process makes.
	inside = "var/data"
)

// TestCrash crashes the machine at any moment, and checks the promise of Save: everything
// reported as durable survives, and the unfinished save survives completely or not at
// all. A process that saves is watched at its system calls; at each, the crash may leave
// any part of what was not synced, in any order. What is left is opened, and must say the
// right thing and take another save. The next process continues from one of these
// crashes, so that crashes in the middle of a repair are among them; or, if only the
// process was killed, from what it had written, synced or not. Which of the threads of a
// process comes first is not decided by the seed, so that a failure may need some runs to
// come again.
func TestCrash(t *testing.T) {
	smallSegments(t, crashSegments)
	total, within := 0, 0
	for seed := range uint64(*crashes) {
		chance := rand.New(rand.NewPCG(seed, 5))
		c := crashed{t: t, chance: chance, dir: inMemory(t)}
		c.top = load(t, c.dir)
		for generation := range uint64(generations) {
			c.seed = seed*generations + generation
			left := c.play()
			if left == nil {
				break
			}
			total += len(left)
			within += c.within
			if t.Failed() {
				return
			}
			if chance.IntN(3) == 0 {
				c.dir = inMemory(t)
				unload(t, c.dir, left[chance.IntN(len(left))].files)
				c.top, c.earlier = load(t, c.dir), nil
			}
		}
	}
	t.Logf("%d crashes, %d of them left the save under way", total, within)
	if total < *crashes*40 || within*50 < total {
		t.Errorf("%d crashes, %d of them left the save under way: that is too few to show anything", total, within)
	}
}

// crashed is one machine, with one process after the other, and their crashes.
type crashed struct {
	t      *testing.T
	chance *rand.Rand
	dir    string
	top    *thing // what is in dir, and what of it is durable
	// earlier has the states that may be durable after a process was killed and before
	// the next one has reported what it found.
	earlier []*State

	seed   uint64 // of the present process
	lines  int    // that it has said
	within int    // crashes that left a save which had not returned
}

// image is what a crash left after the process had printed a number of lines.
type image struct {
	lines int
	call  int
	files map[string][]byte
}

// play lets a process save, kills it at some point, and checks what each crash leaves. It
// returns nil if it cannot continue from there.
func (c *crashed) play() []image {
	t := c.t
	copied := filepath.Join(inMemory(t), "copy")
	if err := os.CopyFS(copied, os.DirFS(c.dir)); err != nil {
		t.Fatal(err)
	}
	found := reopen(t, filepath.Join(copied, inside))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=save:%s", childEnv, filepath.Join(c.dir, inside)), fmt.Sprint(seedEnv, "=", c.seed), "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	var left []image
	calls, life := 0, 25<<(4*c.chance.IntN(2)) // a short one or a long one
	c.lines, c.within = 0, 0
	tr := &tracer{t: t, root: c.dir, top: c.top, fds: make(map[int]*thing)}
	tr.said = func() { c.lines++ }
	tr.changed = func() {
		if calls++; calls == 1 || c.lines == 1 || c.chance.IntN(3) == 0 {
			x := image{c.lines, calls, make(map[string][]byte)}
			c.top.survive("", &luck{c.chance, c.chance.IntN(5), c.chance.IntN(2) == 0}, x.files)
			left = append(left, x)
		}
		if c.chance.IntN(life) == 0 {
			tr.kill()
		}
	}
	tr.trace(cmd)
	if diff := cmp.Diff(contents(load(t, c.dir)), contents(c.top)); diff != "" {
		if tr.killed { // in the middle of a call, whose end nobody saw
			return nil
		}
		t.Fatalf("the tracer has not seen all (-there is +it saw):\n%s", diff)
	}
	states := newScript(c.seed, found).states()
	for _, x := range left {
		c.check(&x, c.allowed(x.lines, found, states))
	}
	c.earlier = c.allowed(c.lines, found, states)
	return left
}

// allowed are the states that a crash may leave. The last one contains the unfinished
// save.
func (c *crashed) allowed(lines int, found *State, states []*State) []*State {
	if lines == 0 {
		return append(slices.Clone(c.earlier), found)
	}
	return states[lines-1 : min(lines+1, len(states))]
}

// inMemory returns a directory in memory, if there is one, where a sync takes no time.
// The test simulates the crashes, so it needs no real disk.
func inMemory(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "store")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// contents returns the files below a folder as processes see them. It leaves out the
// files that another thread may be writing when the process ends: segments made in
// advance, and the file reached.
func contents(f *thing) map[string][]byte {
	files := make(map[string][]byte)
	for name, in := range f.names {
		if in.names == nil && filepath.Ext(name) != ".tmp" && name != reachedName {
			files[name] = append([]byte{}, in.now...)
		}
		for path, b := range contents(in) {
			files[filepath.Join(name, path)] = b
		}
	}
	return files
}

// check opens what a crash left.
func (c *crashed) check(x *image, allowed []*State) {
	t := c.t
	top := inMemory(t)
	defer os.RemoveAll(top)
	unload(t, top, x.files)
	dir := filepath.Join(top, inside)
	where := fmt.Sprintf("process %d, after call %d and line %d", c.seed, x.call, x.lines)
	s, got, err := Open(dir, testID, quiet)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	i := slices.IndexFunc(allowed, func(want *State) bool { return same(want, got) })
	if i < 0 {
		t.Errorf("%s the directory holds something else (-want +got):\n%s", where, differ(allowed[0], got))
	} else if i > 0 && !same(allowed[0], allowed[i]) {
		c.within++
	}
	next := newScript(c.seed+1000, got)
	for range 2 {
		next.save(t, s)
	}
	mustClose(t, s) // which writes down the commit index
	next.take(step{})
	if again := reopen(t, dir); !same(next.now, again) {
		t.Errorf("%s, and two more, it holds something else (-want +got):\n%s", where, differ(next.now, again))
	}
}

// same tells whether two directories say the same; differ, how they differ.
func same(a, b *State) bool {
	return a.Fresh == b.Fresh && proto.Equal(a.HardState, b.HardState) && proto.Equal(a.Snapshot, b.Snapshot) &&
		slices.EqualFunc(a.Entries, b.Entries, func(a, b *raftpb.Entry) bool { return proto.Equal(a, b) })
}

func differ(a, b *State) string {
	return cmp.Diff(a, b, protocmp.Transform(), cmpopts.IgnoreFields(State{}, "UID"))
}

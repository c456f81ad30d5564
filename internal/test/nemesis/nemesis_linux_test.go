// Package nemesis tests real servers with real faults. Three servers run in network namespaces of
// their own, each with a disk of its own. Clients run in further namespaces. The test cuts links in
// one or both directions, makes links slow, kills and stops processes, starts servers with other
// clocks, and fills disks. The clients report to an observer, with readings of the machine's clock.
// At the end the observer checks, among other things, that no two clients held one lock at a time.
//
// The test starts its own binary again as the director, in a new network namespace and a new mount
// namespace. All other namespaces and all disks belong to these two, and all processes end when the
// director ends. So nothing is left behind, however the test ends, and the machine's own network
// does not change. Where namespaces are not allowed, the test is skipped and says why.
package nemesis

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/test/mutation"
)

var (
	lasts = flag.Duration("for", 0, "how long faults are drawn from the seed; without it, one fault of each kind")
	seed  = flag.Uint64("seed", 0, "seed of the faults, or 0 for another each time")
	keep  = flag.String("keep", "", "directory that keeps what servers and clients say and all reports")
)

const (
	directorRole = "__nemesis-director"
	workerRole   = "__nemesis-worker"
	// notAllowed is the exit status of a director that could not build its world.
	notAllowed = 77
)

func TestMain(m *testing.M) {
	role := ""
	if len(os.Args) == 3 {
		role = os.Args[1]
	}
	switch role {
	case directorRole:
		os.Exit(director(os.Args[2]))
	case workerRole:
		os.Exit(work(os.Args[2]))
	default:
		os.Exit(m.Run())
	}
}

// plan is the order that the director gets.
type plan struct {
	Binary string
	Self   string
	Dir    string
	Seed   uint64
	Lasts  time.Duration
	// If not 0: only this many cuts, or pauses, of each kind, while algorithms guard locks.
	Cuts, Pauses int
	// Copies starts copies of a server while it is cut off, in place of all else.
	Copies bool
}

// TestNemesis runs the director and reports its verdict.
func TestNemesis(t *testing.T) {
	p := plan{Seed: *seed, Lasts: *lasts}
	if p.Seed == 0 {
		p.Seed = uint64(time.Now().UnixNano())
	}
	runNemesis(t, p)
}

// runNemesis builds the server with edits, runs a plan, and returns the output of the director.
func runNemesis(t *testing.T, p plan, edits ...mutation.Edit) []string {
	t.Helper()
	dir := t.TempDir()
	p = newPlan(t, dir, p, edits...)
	status, said := runDirector(t, p)
	last := ""
	if len(said) > 0 {
		last = said[len(said)-1]
	}
	if *keep != "" {
		if err := os.CopyFS(*keep, os.DirFS(filepath.Join(dir, "said"))); err != nil {
			t.Error(err)
		}
	}
	switch {
	case status == notAllowed:
		t.Skip("the nemesis is skipped: " + last)
	case status != 0:
		t.Errorf("seed %d: the director exited with %d: %s", p.Seed, status, last)
		showSaid(t, dir)
	}
	return said
}

// newPlan builds the server with edits into a folder, and fills in the rest of a plan.
func newPlan(t *testing.T, dir string, p plan, edits ...mutation.Edit) plan {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("the nemesis is skipped: the command ip is missing; install iproute2")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := mutation.Overlay(root, dir, "nemesis", edits)
	if err != nil {
		t.Fatal(err)
	}
	p.Binary, p.Self, p.Dir = filepath.Join(dir, "conclave"), self, dir
	build := exec.Command("go", "build", "-overlay", overlay, "-o", p.Binary, "github.com/conclave-io/conclave/cmd/conclave")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the binary under test: %v\n%s", err, output)
	}
	return p
}

// runDirector runs the director, and returns its exit status and its output.
func runDirector(t *testing.T, p plan) (status int, said []string) {
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	cmd, says, err := startDirector(p.Self, string(text))
	if err != nil {
		return notAllowed, []string{"no namespaces are allowed here: " + err.Error()}
	}
	lines := bufio.NewScanner(says)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		said = append(said, lines.Text())
		t.Log(lines.Text())
	}
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), said
	} else if err != nil {
		t.Fatal(err)
	}
	return 0, said
}

// startDirector starts the director in new namespaces, as their root.
func startDirector(self, text string) (*exec.Cmd, interface{ Read([]byte) (int, error) }, error) {
	cmd := exec.Command(self, directorRole, text)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	if uid := os.Geteuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	says, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	cmd.Stderr = cmd.Stdout
	return cmd, says, cmd.Start()
}

// showSaid prints the end of each process's output.
func showSaid(t *testing.T, dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "said", "*.log"))
	if err != nil {
		t.Error(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		if text := strings.TrimSpace(string(text[max(0, len(text)-3000):])); text != "" {
			t.Logf("%s:\n%s", filepath.Base(file), text)
		}
	}
}

// director is the main function of the director.
func director(text string) int {
	var p plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		fmt.Println(err)
		return 2
	}
	w, err := build(servers + hosts)
	if err != nil {
		fmt.Println(err)
		return notAllowed
	}
	switch {
	case p.Cuts > 0:
		err = runHomes(p, w, 2*p.Cuts, (*homes).cutRound)
	case p.Pauses > 0:
		err = runHomes(p, w, 2*p.Pauses, (*homes).pauseRound)
	case p.Copies:
		err = runCopies(p, w)
	default:
		err = runPlan(p, w)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// Package nemesis sets the real thing against a real opponent: three servers,
// each in a network namespace of its own and with a disk of its own, and clients
// in further ones, while links are cut one way and both ways, lines made slow,
// processes killed and stopped, servers started with other clocks, and disks
// filled. An observer, to whom the clients report by the clock of the machine,
// then says whether two held one lock at a time, and much more.
//
// The test starts itself again as the director of the play, in a network and a
// mount namespace that nobody else has. All other namespaces and all disks hang
// on these two, and all processes end when the director does: so nothing of the
// play is left over however it ends, and the machine's own network is not
// touched. Where this is not allowed the test is skipped, and says why.
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
)

var (
	lasts = flag.Duration("for", 0, "how long faults are drawn from the seed; without it, the short play with one of each kind")
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
		os.Exit(direct(os.Args[2]))
	case workerRole:
		os.Exit(work(os.Args[2]))
	default:
		os.Exit(m.Run())
	}
}

// play is what the director is told.
type play struct {
	Binary string
	Self   string
	Dir    string
	Seed   uint64
	Lasts  time.Duration
	Cuts   int // instead: cuts of each kind under algorithms
}

// TestNemesis lets the director play and passes his verdict on.
func TestNemesis(t *testing.T) {
	p := play{Seed: *seed, Lasts: *lasts}
	if p.Seed == 0 {
		p.Seed = uint64(time.Now().UnixNano())
	}
	arrange(t, p)
}

// arrange has a play directed, and returns what the director said.
func arrange(t *testing.T, p play) []string {
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("the nemesis is skipped: there is no ip; install iproute2")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p.Binary, p.Self, p.Dir = filepath.Join(dir, "conclave"), self, dir
	build := exec.Command("go", "build", "-o", p.Binary, "github.com/conclave-io/conclave/cmd/conclave")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the binary under test: %v\n%s", err, output)
	}
	status, said := stage(t, p)
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
		t.Errorf("the play of seed %d ended with %d: %s", p.Seed, status, last)
		showSaid(t, dir)
	}
	return said
}

// stage runs the director, and returns his exit status and what he said.
func stage(t *testing.T, p play) (status int, said []string) {
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	cmd, says, err := raise(p.Self, string(text))
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

// raise starts the director in namespaces of his own, as root of them.
func raise(self, text string) (*exec.Cmd, interface{ Read([]byte) (int, error) }, error) {
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

// showSaid prints the end of what each process said.
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

// direct is the director's whole life.
func direct(text string) int {
	var p play
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		fmt.Println(err)
		return 2
	}
	w, err := build(servers + hosts)
	if err != nil {
		fmt.Println(err)
		return notAllowed
	}
	if p.Cuts > 0 {
		err = performCuts(p, w)
	} else {
		err = perform(p, w)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

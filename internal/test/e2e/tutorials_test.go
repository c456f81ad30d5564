//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestTutorials runs the tutorials line by line, as a reader would. An HTML comment before
// a block says what a reader does by hand:
//
//	<!-- terminal: 1 -->      the block runs in a terminal of its own, to the end
//	<!-- exit: 124 -->        the exit status of the block, 0 by default
//	<!-- kill: 1 -->          the number in the block is the process of that server
//	<!-- program: TEXT -->    the Go program is built and run, and prints TEXT
//
// A block of text after a block of commands is what they print, in part: "..." stands for
// anything, and a number for any number.
func TestTutorials(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../docs/tutorials/*.md")
	if err != nil || len(files) < 4 {
		t.Fatalf("the tutorials are %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".md"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			newReader(t).follow(string(text))
		})
	}
}

// reader is somebody who follows a tutorial.
type reader struct {
	*testing.T
	dir       string
	port      int
	terminals map[string]*terminal
	last      string // the commands of the last block
	exit      int    // and the status that they should end with
}

// terminal is one in which commands run to the end of a tutorial.
type terminal struct {
	cmd *exec.Cmd

	mu   sync.Mutex
	said bytes.Buffer
}

func (t *terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said.Write(b)
}

func (t *terminal) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said.String()
}

func newReader(t *testing.T) *reader {
	t.Helper()
	dir := t.TempDir()
	lab, err := filepath.Abs("../../../lab")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(lab, filepath.Join(dir, "lab")); err != nil {
		t.Fatal(err)
	}
	return &reader{T: t, dir: dir, port: devPorts(t), terminals: make(map[string]*terminal)}
}

// lastPort is where the search for ports continues, so that two tutorials do not get the
// same port.
var lastPort atomic.Int64

// devPorts returns the first of the ports that conclave dev takes for three servers.
func devPorts(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 10_000 + (os.Getpid()%100+int(lastPort.Add(1)))%100*200
		free := true
		for _, p := range []int{port, port + 1, port + 2, port + 100, port + 101, port + 102} {
			l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", p))
			if free = free && err == nil; err == nil {
				l.Close()
			}
		}
		if free {
			return port
		}
	}
	t.Fatal("no ports are free")
	return 0
}

var (
	fence = regexp.MustCompile("^```(\\w*)$")
	aside = regexp.MustCompile(`^<!-- (terminal|exit|kill|program): (.+) -->$`)
)

// follow does what a tutorial says.
func (r *reader) follow(tutorial string) {
	language, within := "", false
	notes := make(map[string]string)
	var block strings.Builder
	for line := range strings.Lines(tutorial) {
		line = strings.TrimSuffix(line, "\n")
		switch match := fence.FindStringSubmatch(line); {
		case match != nil && !within:
			language, within = match[1], true
		case match != nil:
			r.block(language, block.String(), notes)
			within = false
			block.Reset()
			clear(notes)
		case within:
			block.WriteString(line + "\n")
		default:
			if note := aside.FindStringSubmatch(line); note != nil {
				notes[note[1]] = note[2]
			}
		}
	}
	r.settle("")
}

func (r *reader) block(language, text string, notes map[string]string) {
	switch language {
	case "text":
		r.settle(text)
		return
	case "go":
		r.settle("")
		r.program(text, notes["program"])
		return
	case "sh":
		r.settle("")
	default:
		return
	}
	if server := notes["kill"]; server != "" {
		text = regexp.MustCompile(`\d{3,}`).ReplaceAllString(text, r.process(server))
	}
	if name := notes["terminal"]; name != "" {
		r.open(name, text)
		return
	}
	r.last, r.exit = text, 0
	if status := notes["exit"]; status != "" {
		var err error
		if r.exit, err = strconv.Atoi(status); err != nil {
			r.Fatal(err)
		}
	}
}

// shell runs commands as the tutorial has them, with the ports of this test.
func (r *reader) shell(ctx context.Context, commands string) *exec.Cmd {
	commands = strings.ReplaceAll(commands, "conclave dev", fmt.Sprint("conclave dev --port ", r.port))
	cmd := exec.CommandContext(ctx, "bash", "-ec", commands)
	cmd.Dir = r.dir
	cmd.Env = []string{"PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH"), "HOME=" + r.dir, fmt.Sprint("CONCLAVE_SERVERS=127.0.0.1:", r.port)}
	return cmd
}

// settle repeats the last commands until their output and their exit status are as
// expected, because an effect of another terminal may take a moment.
func (r *reader) settle(want string) {
	r.Helper()
	if r.last == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*testTimeout)
	defer cancel()
	for {
		out, err := r.shell(ctx, r.last).CombinedOutput()
		var ended *exec.ExitError
		status := 0
		if errors.As(err, &ended) {
			status = ended.ExitCode()
		}
		wrong := unlike(string(out), want)
		if status == r.exit && wrong == "" {
			r.last = ""
			return
		}
		if ctx.Err() != nil || len(r.terminals) == 0 {
			r.Fatalf("%s\nends with %v and not with status %d; it does not print %q, but\n%s\nterminals: %v", r.last, err, r.exit, wrong, out, r.terminals)
		}
	}
}

// unlike returns the first line that is missing in an output, or "".
func unlike(output, want string) string {
	lines := strings.Split(output, "\n")
	at := 0
	for line := range strings.Lines(want) {
		line = strings.TrimSpace(line)
		if line == "" || line == "..." {
			continue
		}
		pattern := regexp.MustCompile(`\d+(?:\\\.\d+)?`).ReplaceAllString(regexp.QuoteMeta(line), `\d+(?:\.\d+)?`)
		pattern = regexp.MustCompile(`\s+`).ReplaceAllString(strings.ReplaceAll(pattern, `\.\.\.`, ".*"), `\s+`)
		like := regexp.MustCompile("^" + pattern + "$")
		for at < len(lines) && !like.MatchString(strings.TrimSpace(lines[at])) {
			at++
		}
		if at == len(lines) {
			return line
		}
		at++
	}
	return ""
}

// open runs commands in a terminal of their own.
func (r *reader) open(name, commands string) {
	r.Helper()
	t := &terminal{cmd: r.shell(context.Background(), "exec "+commands)}
	t.cmd.Stdout, t.cmd.Stderr = t, t
	if err := t.cmd.Start(); err != nil {
		r.Fatal(err)
	}
	r.terminals[name] = t
	r.Cleanup(func() {
		_ = t.cmd.Process.Signal(syscall.SIGINT) // it may have ended
		_ = t.cmd.Wait()
	})
}

// process returns the process of a server that conclave dev runs in the first terminal.
func (r *reader) process(server string) string {
	r.Helper()
	line := regexp.MustCompile(`server ` + server + ` is process (\d+)`)
	for begun := time.Now(); time.Since(begun) < testTimeout; {
		if found := line.FindStringSubmatch(r.terminals["1"].String()); found != nil {
			return found[1]
		}
	}
	r.Fatalf("the first terminal does not name the process of server %s:\n%v", server, r.terminals["1"])
	return ""
}

// program builds and runs a Go program in this module.
func (r *reader) program(source, want string) {
	r.Helper()
	if want == "" {
		r.Fatalf("a program does not say what it prints:\n%s", source)
	}
	dir := r.TempDir()
	file, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(source, "127.0.0.1:7400", fmt.Sprint("127.0.0.1:", r.port))), 0o600); err != nil {
		r.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", program, file).CombinedOutput(); err != nil {
		r.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || unlike(string(out), want) != "" {
		r.Errorf("%s\nprints %q, %v; want %q", source, out, err, want)
	}
}

// A tutorial that shows another output than the commands print does not pass.
func TestUnlike(t *testing.T) {
	const output = "fence 12\nserver 1 (x) up 3s\nmean 2.75, most 3\n"
	for want, missing := range map[string]string{
		"fence 7\n": "", "...\nmean 1, most 9\n": "", "server 9 ... up 1s": "",
		"fence 7\nfence 7\n": "fence 7", "mean ...\nfence 1": "fence 1", "fence": "fence", "Fence 12": "Fence 12",
	} {
		if got := unlike(output, want); got != missing {
			t.Errorf("%q: %q is missing, want %q", want, got, missing)
		}
	}
}

package guard

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// The test binary is also the wrapper and all the commands that the tests run: its
// first argument says which.
func TestMain(m *testing.M) {
	os.Setenv("GORACE", "atexit_sleep_ms=0") // or each process of a -race binary would sleep for a second at its end
	if len(os.Args) > 1 {
		if role := roles[os.Args[1]]; role != nil {
			role(os.Args[2:])
			os.Exit(0)
		}
	}
	// The tests wait for deadlines most of the time.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		for _, path := range cgroupsOf(os.Getpid()) {
			fmt.Fprintln(os.Stderr, path, "is left over")
			status = 1
		}
		os.Exit(status)
	}))
}

var roles map[string]func(args []string)

func init() {
	roles = map[string]func(args []string){
		"stamp":   func(a []string) { stamp(a[0], 30*time.Second) },
		"deaf":    func(a []string) { signal.Ignore(unix.SIGTERM); stamp(a[0], 30*time.Second) },
		"brief":   func(a []string) { stamp(a[0], 500*time.Millisecond); mark(a[0], "whole") },
		"last":    lastWords,
		"daemon":  daemon,
		"fork":    func(a []string) { spawn(true, a...) },
		"storm":   storm,
		"signals": echoSignals,
		"wrapper": wrapper,
		"line":    echoLine,
	}
}

// stamp appends a reading of the clock to a file every millisecond, as a holder writes to
// the resource that the lock protects.
func stamp(path string, howLong time.Duration) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	ticks := time.NewTicker(time.Millisecond)
	for end := boottime.Now().Add(howLong); boottime.Now() < end; <-ticks.C {
		fmt.Fprintln(f, int64(boottime.Now()))
	}
	f.Close()
}

func mark(path, word string) {
	if err := os.WriteFile(path+"."+word, nil, 0o600); err != nil {
		panic(err)
	}
}

// lastWords records that it got TERM, and continues.
func lastWords(args []string) {
	term := make(chan os.Signal, 1)
	signal.Notify(term, unix.SIGTERM)
	go func() { <-term; mark(args[0], "termed") }()
	stamp(args[0], 30*time.Second)
}

// spawn runs this binary in a role, without waiting for it.
func spawn(setsid bool, args ...string) {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: setsid}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
}

// daemon starts a process that has left the session twice, whose parents are dead, and
// that ignores TERM. daemon itself continues.
func daemon(args []string) {
	spawn(true, "fork", "fork", "deaf", args[0])
	stamp(args[0], 30*time.Second)
}

// storm keeps 50 process families running. Each forks repeatedly, and half of them leave
// the session.
func storm(args []string) {
	signal.Ignore(unix.SIGTERM)
	var families sync.WaitGroup
	end := boottime.Now().Add(20 * time.Second)
	for range 50 {
		families.Go(func() {
			for boottime.Now() < end {
				cmd := exec.Command("sh", "-c", "setsid sleep 0.3 & sleep 0.02")
				if err := cmd.Run(); err != nil {
					return
				}
			}
		})
	}
	spawn(true, "deaf", args[0])
	families.Wait()
}

// echoSignals names each signal that it gets.
func echoSignals([]string) {
	got := make(chan os.Signal, 16)
	signal.Notify(got, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH)
	fmt.Println("ready")
	for sig := range got {
		fmt.Println(unix.SignalName(sig.(syscall.Signal)))
	}
}

// echoLine repeats a line that it reads from the terminal.
func echoLine([]string) {
	fmt.Println("reading")
	var line string
	fmt.Scanln(&line)
	fmt.Println("read", line)
	fmt.Scanln(&line) // until Ctrl-C
}

func childrenOf(mode string) Children {
	if strings.HasPrefix(mode, leaveMode) {
		return LeaveChildren
	}
	return AwaitChildren
}

// outcome is what a wrapper says at its end.
type outcome struct {
	Result Result
	Err    string
}

// wrapper runs a command under a guard, in its own process. It prints its deadline first,
// and the result of the command last.
func wrapper(args []string) {
	left, _ := time.ParseDuration(args[0])
	deadline := boottime.Now().Add(left)
	h, err := Start(Spec{
		Argv: args[3:], Env: append(os.Environ(), tokenVar+args[1]), Deadline: deadline,
		Grace: 100 * time.Millisecond, Margin: testMargin, Sole: true, Terminal: args[2] == "tty", Stdin: os.Stdin,
		noCgroup:  strings.HasSuffix(args[2], withoutCgroup),
		Suspended: func() { fmt.Println("suspended") },
		Children:  childrenOf(args[2]),
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(125)
	}
	if args[2] == "tty" {
		signal.Ignore(unix.SIGINT) // what the shell's group gets is not the command's
	} else {
		fmt.Println(strconv.FormatInt(int64(deadline), 10))
	}
	r, err := h.Wait()
	said := outcome{Result: r}
	if err != nil {
		said.Err = err.Error()
	}
	json.NewEncoder(os.Stdout).Encode(said)
	os.Exit(r.Status)
}

package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/local"
	"github.com/conclave-io/conclave/internal/service/version"
)

// DeadlockCommand is the hidden command that runs one of the two programs.
const DeadlockCommand = "__demo-deadlock"

// DeadlockReport is the result of two programs that take two locks in opposite order.
type DeadlockReport struct {
	// Refused is the program whose call failed, and Cycle what it was told.
	Refused string `json:"refused"`
	Cycle   string `json:"cycle"`
	// RefusedMS is how long the call took, and RoundTripMS the median of the calls
	// before it that asked whether the same lock is free.
	RefusedMS   float64 `json:"refused_ms"`
	RoundTripMS float64 `json:"round_trip_ms"`
	// WentOn is the program that got both locks.
	WentOn string `json:"went_on"`
}

// Good reports whether one program was refused, and the other continued.
func (r *DeadlockReport) Good() bool {
	return r.Refused != "" && r.WentOn != "" && r.Refused != r.WentOn
}

// Text says the verdict in words.
func (r *DeadlockReport) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "refused        %s\n", r.Refused)
	fmt.Fprintf(&b, "told           %s\n", r.Cycle)
	fmt.Fprintf(&b, "after          %.2f ms; a round trip takes %.2f ms\n", r.RefusedMS, r.RoundTripMS)
	fmt.Fprintf(&b, "went on        %s\n", r.WentOn)
	return b.String()
}

// program is one of the two, with a pipe that tells it to continue, and its output.
type program struct {
	name    string
	cmd     *exec.Cmd
	proceed io.WriteCloser
	says    *bufio.Scanner
}

// RunDeadlock lets two programs take two locks in opposite order. An error says that
// there is no verdict.
func RunDeadlock(ctx context.Context, cfg Config) (report DeadlockReport, err error) {
	s := &stage{Config: cfg, began: time.Now()}
	defer s.clear()
	if err := s.serve(ctx); err != nil {
		return report, err
	}
	if err := s.cluster.Raise(ctx, s.client, version.Keeps); err != nil {
		return report, err
	}
	left, err := s.startProgram("left", "x", "y")
	if err != nil {
		return report, err
	}
	defer left.end()
	right, err := s.startProgram("right", "y", "x")
	if err != nil {
		return report, err
	}
	defer right.end()
	if err := errors.Join(left.expect("holds"), right.expect("holds")); err != nil {
		return report, err
	}
	s.say("program left holds the lock x, and program right the lock y")
	if _, err := io.WriteString(left.proceed, "\n"); err != nil {
		return report, err
	}
	if err := s.awaitWait(ctx); err != nil {
		return report, err
	}
	s.say("left waits for y, while it keeps x; now right asks for x, while it keeps y")
	if _, err := io.WriteString(right.proceed, "\n"); err != nil {
		return report, err
	}
	if err := report.read(right, left); err != nil {
		return report, err
	}
	s.say("%s is told of the deadlock and releases what it keeps; %s gets both locks", report.Refused, report.WentOn)
	return report, nil
}

// read reads what becomes of the two, the one that closes the cycle first.
func (r *DeadlockReport) read(closing, other *program) error {
	for _, p := range []*program{closing, other} {
		if !p.says.Scan() {
			return fmt.Errorf("program %s ended early", p.name)
		}
		said := p.says.Text()
		var took, round time.Duration
		if _, err := fmt.Sscanf(said, "deadlock %d %d", &took, &round); err == nil {
			r.Refused, r.RefusedMS, r.RoundTripMS = p.name, took.Seconds()*1e3, round.Seconds()*1e3
			if !p.says.Scan() {
				return fmt.Errorf("program %s ended early", p.name)
			}
			r.Cycle = p.says.Text()
		} else if said == "both" {
			r.WentOn = p.name
		} else {
			return fmt.Errorf("program %s says %q", p.name, said)
		}
	}
	return nil
}

// awaitWait waits until one of the programs waits for what the other keeps.
func (s *stage) awaitWait(ctx context.Context) error {
	return s.cluster.Await(ctx, 10*time.Second, "no program waits", func(ctx context.Context) (bool, error) {
		waits, _, err := s.client.Waits(ctx)
		return len(waits) > 0, err
	})
}

func (s *stage) startProgram(name, first, second string) (*program, error) {
	cmd := exec.Command(s.Binary, DeadlockCommand, "--servers", strings.Join(s.cluster.Addresses(), ","), "--name", name, "--first", first, "--second", second)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	local.Prepare(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("program %s does not start: %w", name, err)
	}
	return &program{name, cmd, in, bufio.NewScanner(out)}, nil
}

func (p *program) expect(word string) error {
	if !p.says.Scan() || p.says.Text() != word {
		return fmt.Errorf("program %s says %q, not %q", p.name, p.says.Text(), word)
	}
	return nil
}

// end lets a program finish, by the end of its input.
func (p *program) end() {
	p.proceed.Close()
	for p.says.Scan() {
	}
	_ = p.cmd.Wait() // what it had to say it has said
}

// Program is one of the two programs: it takes the first lock, and when it is told to, the
// second.
func Program(ctx context.Context, servers []string, name, first, second string, in io.Reader, out io.Writer) error {
	client, err := conclave.Dial(ctx, conclave.Config{Servers: servers, TTL: ttl, Program: name})
	if err != nil {
		return err
	}
	defer client.Close()
	outer, err := client.Lock(ctx, first)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "holds")
	told := bufio.NewScanner(in)
	if !told.Scan() {
		return told.Err()
	}
	round, err := roundTrip(ctx, client, second)
	if err != nil {
		return err
	}
	began := time.Now()
	inner, err := client.Lock(outer.Context(), second)
	took := time.Since(began)
	if errors.Is(err, conclave.ErrDeadlock) {
		// Released first: the other waits for it.
		if err := outer.Unlock(ctx); err != nil {
			return err
		}
		fmt.Fprintf(out, "deadlock %d %d\n%v\n", took, round, err)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "both")
	return errors.Join(inner.Unlock(ctx), outer.Unlock(ctx))
}

// roundTrip returns the median time of a question whether a lock is free that is held.
func roundTrip(ctx context.Context, client *conclave.Client, name string) (time.Duration, error) {
	var took []time.Duration
	for range 21 {
		began := time.Now()
		if _, err := client.TryLock(ctx, name); !errors.Is(err, conclave.ErrHeld) {
			return 0, fmt.Errorf("the lock %s is not held: %v", name, err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

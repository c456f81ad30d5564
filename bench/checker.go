package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

//go:embed ricartagrawala.pml
var promela []byte

// searcher is one way to search the model.
type searcher struct {
	name string
	spin []string // compiler options of the verifier
	args []string // arguments of conclave check
}

var searchers = []searcher{
	{name: "Spin, whole states, 1 core", spin: []string{"-DNOREDUCE"}},
	{name: "Spin, hash-compact, 1 core", spin: []string{"-DNOREDUCE", "-DHC4"}},
	{name: "Spin, breadth first, 2 cores", spin: []string{"-DNOREDUCE", "-DBFS_PAR"}},
	{name: "conclave, 1 core", args: []string{"--property", "mutual exclusion", "--workers", "1"}},
	{name: "conclave, 2 cores", args: []string{"--property", "mutual exclusion", "--workers", "2"}},
	{name: "Spin, reduced, 1 core", spin: []string{"-DX"}},
	{name: "conclave, reduced, 2 cores", args: []string{"--property", "mutual exclusion", "--workers", "2", "--reduce", "por"}},
	{name: "conclave, all promises, 2 cores", args: []string{"--workers", "2"}},
	{name: "conclave, all promises, reduced, 2 cores", args: []string{"--workers", "2", "--reduce", "por"}},
}

// searched is the result of one complete search.
type searched struct {
	Searcher      string  `json:"searcher"`
	Round         int     `json:"round"`
	States        uint64  `json:"states"`
	Transitions   uint64  `json:"transitions"`
	Seconds       float64 `json:"seconds"`
	Rate          float64 `json:"transitions_per_s"`
	BytesPerState float64 `json:"bytes_per_state"` // peak resident memory, divided by the states
}

// errViolated reports that a search found a violation.
var errViolated = errors.New("the search found a violation")

// checker measures Spin and Conclave on the same model. They take turns.
func checker(ctx context.Context, b *bench) (section, error) {
	verifiers, why := spinVerifiers(ctx, b)
	var all []searched
	for round := range b.rounds {
		for _, s := range searchers {
			if s.spin != nil && why != nil {
				continue
			}
			r, err := s.search(ctx, b, verifiers[s.name])
			if err != nil {
				return section{}, fmt.Errorf("%s: %w", s.name, err)
			}
			r.Searcher, r.Round = s.name, round+1
			fmt.Fprintf(os.Stderr, "%d: %s: %.2f million transitions/s\n", r.Round, r.Searcher, r.Rate/1e6)
			all = append(all, r)
		}
	}
	text := fmt.Sprintf("Ricart-Agrawala, N=3, %d entries each.\n\n%s", b.entries, searchTable(all))
	if why != nil {
		text += fmt.Sprintf("\nLeft out: %v.\n", why)
	}
	return section{text, all}, nil
}

// spinVerifiers builds a verifier for each mode of Spin.
func spinVerifiers(ctx context.Context, b *bench) (map[string]string, error) {
	files := make(map[string]string)
	for i, s := range searchers {
		if s.spin == nil {
			continue
		}
		dir := filepath.Join(b.dir, fmt.Sprint("spin", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
		file, err := verifier(ctx, dir, 3, b.entries, "", s.spin...)
		if err != nil {
			return nil, err
		}
		files[s.name] = file
	}
	return files, nil
}

// verifier builds in dir, with Spin, a verifier of the model or of a broken variant.
func verifier(ctx context.Context, dir string, n, entries int, variant string, options ...string) (string, error) {
	for _, name := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(name); err != nil {
			return "", fmt.Errorf("%s: not installed; run apt-get install %[1]s", name)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "model.pml"), promela, 0o600); err != nil {
		return "", err
	}
	defines := []string{fmt.Sprint("-DN=", n), fmt.Sprint("-DENTRIES=", entries)}
	if variant != "" {
		defines = append(defines, "-D"+variant)
	}
	if err := command(ctx, dir, "spin", slices.Concat([]string{"-a"}, defines, []string{"model.pml"})...); err != nil {
		return "", err
	}
	gcc := slices.Concat([]string{"-w", "-O3", "-DSAFETY", "-DMEMLIM=16000"}, options, []string{"-o", "verifier", "pan.c"})
	return filepath.Join(dir, "verifier"), command(ctx, dir, "gcc", gcc...)
}

func (s *searcher) search(ctx context.Context, b *bench, verifier string) (searched, error) {
	if s.spin != nil {
		return runSpin(ctx, verifier, b.entries)
	}
	args := slices.Concat([]string{"check", "ricart-agrawala", "-n", "3", "--entries", strconv.Itoa(b.entries), "--memory", "6000", "--json"}, s.args)
	out, peak, err := outputAndPeak(exec.CommandContext(ctx, b.binaries.Conclave, args...))
	if err != nil {
		return searched{}, err
	}
	var view struct {
		Verdict             string
		States, Transitions uint64
		Seconds             float64
	}
	if err := json.Unmarshal(out, &view); err != nil {
		return searched{}, err
	}
	if view.Verdict != "proved" {
		return searched{}, fmt.Errorf("the verdict is %q; expected \"proved\"", view.Verdict)
	}
	return rated(view.States, view.Transitions, view.Seconds, peak), nil
}

func rated(states, transitions uint64, seconds float64, peak int64) searched {
	return searched{
		States: states, Transitions: transitions, Seconds: seconds,
		Rate: float64(transitions) / math.Max(seconds, 0.001), BytesPerState: float64(peak) / float64(states),
	}
}

// runSpin runs a verifier of Spin. It limits the search depth: a run has 6 steps per entry, and 2
// more for each other process that is asked.
func runSpin(ctx context.Context, verifier string, entries int) (searched, error) {
	slots := min(20+2*max(entries-2, 0), 30) // size of the hash table, as a power of two
	cmd := exec.CommandContext(ctx, verifier, "-m1000", fmt.Sprint("-w", slots))
	cmd.Dir = filepath.Dir(verifier) // the verifier writes the violating run there
	out, peak, err := outputAndPeak(cmd)
	if err != nil {
		return searched{}, err
	}
	if !bytes.Contains(out, []byte("errors: 0")) {
		return searched{}, fmt.Errorf("%w: %s", errViolated, bytes.TrimSpace(out))
	}
	var figures [3]float64
	for i, of := range []*regexp.Regexp{storedStates, spinTransitions, spinElapsed} {
		found := of.FindSubmatch(out)
		if found == nil {
			return searched{}, fmt.Errorf("no %q in what the verifier printed: %s", of, out)
		}
		if figures[i], err = strconv.ParseFloat(string(found[1]), 64); err != nil {
			return searched{}, err
		}
	}
	// Spin counts the initial state as a transition.
	return rated(uint64(figures[0]), uint64(figures[1])-1, figures[2], peak), nil
}

var (
	storedStates    = regexp.MustCompile(`(?m)^\s*([0-9.e+]+) states, stored`)
	spinTransitions = regexp.MustCompile(`(?m)^\s*([0-9.e+]+) transitions \(`)
	spinElapsed     = regexp.MustCompile(`elapsed time ([0-9.e+-]+) seconds`)
)

// outputAndPeak runs a command and returns its standard output, and the largest size in
// bytes of its resident memory.
func outputAndPeak(cmd *exec.Cmd) ([]byte, int64, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return nil, 0, errors.ErrUnsupported
	}
	return out.Bytes(), usage.Maxrss << 10, nil
}

// searchTable has a line for each searcher with results.
func searchTable(all []searched) string {
	var rows [][]string
	for _, s := range searchers {
		var rates, seconds, sizes []float64
		var last searched
		for _, r := range all {
			if r.Searcher == s.name {
				rates, seconds, sizes, last = append(rates, r.Rate/1e6), append(seconds, r.Seconds), append(sizes, r.BytesPerState), r
			}
		}
		if rates == nil {
			continue
		}
		rows = append(rows, []string{
			s.name, fmt.Sprint(last.States), fmt.Sprint(last.Transitions), spreadOf(rates).String(), spreadOf(seconds).String(), digits(spreadOf(sizes).Median),
		})
	}
	return table(strings.Split("search|states|transitions|million transitions/s|seconds|bytes per state", "|"), rows)
}

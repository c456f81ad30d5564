package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/conclave-io/conclave/internal/test/vopr"
	"github.com/conclave-io/conclave/internal/test/vopr/stats"
)

// A process can play one world at a time, because a world replaces the source of random numbers
// of the whole process. So several processes play seeds in turn: of three workers, the second
// plays seeds 2, 5, 8 and so on. What they give is added up in the order of the seeds. So the
// figures do not depend on the number of workers.

// played is what a seed gave.
type played struct {
	Seed   uint64
	Stats  stats.Stats
	Failed bool
}

// source returns a function that plays the seeds, which must be asked for in order. end must be
// called after the last.
func (o *options) source() (next func(seed uint64) (stats.Stats, error), end func(), err error) {
	if o.workers == 1 || o.log {
		return o.one, func() {}, nil
	}
	program, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	var workers []*worker
	end = func() {
		for _, w := range workers {
			w.end()
		}
	}
	for n := range o.workers {
		w, err := hire(program, append(given("seed", "workers"),
			fmt.Sprintf("-seed=%d", o.seed+uint64(n)), fmt.Sprintf("-every=%d", o.workers)))
		if err != nil {
			end()
			return nil, nil, err
		}
		workers = append(workers, w)
	}
	return func(seed uint64) (stats.Stats, error) {
		p, err := workers[(seed-o.seed)%uint64(o.workers)].next(seed)
		if err != nil || !p.Failed {
			return p.Stats, err
		}
		if _, err := o.one(seed); err != nil { // which says what failed, and makes the plan smaller
			return p.Stats, err
		}
		return p.Stats, fmt.Errorf("seed %d failed in one process and not in another", seed)
	}, end, nil
}

// work plays each seed of so many until it is ended, and writes what each gave.
func (o *options) work(w io.Writer) error {
	out := json.NewEncoder(w)
	for seed := o.seed; ; seed += o.every {
		result := vopr.Check(o.plan(seed), nil, checks[o.checks])
		failed := result.Violation != nil
		if err := out.Encode(played{seed, result.Stats, failed}); err != nil || failed {
			return err
		}
	}
}

// worker is a process that plays seeds.
type worker struct {
	cmd *exec.Cmd
	out *json.Decoder
}

func hire(program string, args []string) (*worker, error) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &worker{cmd: cmd, out: json.NewDecoder(out)}, cmd.Start()
}

// next returns what the worker's next seed gave.
func (w *worker) next(seed uint64) (p played, err error) {
	if err = w.out.Decode(&p); err != nil {
		return p, errors.Join(fmt.Errorf("the process that plays seed %d ended: %w", seed, err), w.cmd.Wait())
	}
	if p.Seed != seed {
		return p, fmt.Errorf("a process played seed %d instead of %d", p.Seed, seed)
	}
	return p, nil
}

func (w *worker) end() {
	w.cmd.Process.Kill() // it plays until then
	w.cmd.Wait()
}

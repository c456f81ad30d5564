package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/conclave-io/conclave/lab/scenario"
)

// progress is a line about what takes long, for a person who waits at a terminal.
// It is written anew every so often, and wiped away in the end. Several
// goroutines may report.
type progress struct {
	to      io.Writer // nil: nobody watches
	now     func() time.Time
	mu      sync.Mutex
	last    time.Time // of the last line, or of the beginning
	written bool
}

// progressPause is the time until the first line, and from one to the next.
const progressPause = 2 * time.Second

// watchProgress returns progress that is seen if standard error is a terminal.
func (a *app) watchProgress() *progress {
	p := &progress{now: time.Now}
	if file, is := a.stderr.(*os.File); is && isTerminal(file) {
		p.to = file
	}
	p.last = p.now()
	return p
}

// report writes a line, if it is time for one.
func (p *progress) report(format string, args ...any) {
	if p.to == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.now(); now.Sub(p.last) >= progressPause {
		p.last, p.written = now, true
		fmt.Fprintf(p.to, wipe+"conclave: "+format, args...)
	}
}

// done wipes the line away.
func (p *progress) done() {
	if p.written {
		fmt.Fprint(p.to, wipe)
	}
}

// wipe goes to the beginning of a line of a terminal and clears it.
const wipe = "\r\x1b[K"

// follow reports on the runs of a scenario until done.
func (p *progress) follow(sc *scenario.Scenario) {
	if p.to == nil {
		return
	}
	cfg := sc.Config()
	sc.Progress = func(at scenario.Progress) {
		p.report("%s, n = %d: %d events, %d entries, at %s D", cfg.Spec.Name, cfg.Process.N, at.Events, at.Entries,
			short(float64(at.Time)/float64(cfg.Process.D())))
	}
}

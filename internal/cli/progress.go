package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// progress is a line on the terminal about a long computation. It is overwritten at each report, and
// erased at the end. Several goroutines may report.
type progress struct {
	to      io.Writer // nil: standard error is not a terminal
	now     func() time.Time
	mu      sync.Mutex
	last    time.Time // of the last line, or of the start
	written bool
}

// progressPause is the time until the first line, and from one to the next.
const progressPause = 2 * time.Second

// watchProgress returns progress that is shown if standard error is a terminal.
func (a *app) watchProgress() *progress {
	if file, is := a.stderr.(*os.File); is && isTerminal(file) {
		return newProgress(file, time.Now)
	}
	return newProgress(nil, time.Now)
}

// newProgress returns progress that is shown on a terminal, or nowhere if there is none. It takes the
// time from now.
func newProgress(terminal io.Writer, now func() time.Time) *progress {
	return &progress{to: terminal, now: now, last: now()}
}

// shown reports whether anybody sees the line.
func (p *progress) shown() bool { return p.to != nil }

// report writes a line, if progressPause has passed since the last one.
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

// done erases the line.
func (p *progress) done() {
	if p.written {
		fmt.Fprint(p.to, wipe)
	}
}

// wipe moves the cursor to the start of the line and clears it.
const wipe = "\r\x1b[K"

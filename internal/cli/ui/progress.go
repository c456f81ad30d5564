package ui

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Progress is a line on the terminal about a long computation. It is overwritten at each report, and
// erased at the end. Several goroutines may report.
type Progress struct {
	to      io.Writer // nil: standard error is not a terminal
	now     func() time.Time
	mu      sync.Mutex
	last    time.Time // of the last line, or of the start
	written bool
}

// progressPause is the time until the first line, and from one to the next.
const progressPause = 2 * time.Second

// WatchProgress returns progress that is shown if standard error is a terminal.
func (a *App) WatchProgress() *Progress {
	if file, is := a.Stderr.(*os.File); is && IsTerminal(file) {
		return NewProgress(file, time.Now)
	}
	return NewProgress(nil, time.Now)
}

// NewProgress returns progress that is shown on a terminal, or nowhere if there is none. It takes the
// time from now.
func NewProgress(terminal io.Writer, now func() time.Time) *Progress {
	return &Progress{to: terminal, now: now, last: now()}
}

// Shown reports whether anybody sees the line.
func (p *Progress) Shown() bool { return p.to != nil }

// Report writes a line, if progressPause has passed since the last one.
func (p *Progress) Report(format string, args ...any) {
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

// Done erases the line.
func (p *Progress) Done() {
	if p.written {
		fmt.Fprint(p.to, wipe)
	}
}

// wipe moves the cursor to the start of the line and clears it.
const wipe = "\r\x1b[K"

package ui

import (
	"bytes"
	"testing"
	"time"
)

// TestProgressIsQuiet says nothing of what takes no time, and nothing to a file.
func TestProgressIsQuiet(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := &Progress{to: &out, last: now, now: func() time.Time { return now.Add(progressPause - 1) }}
	p.Report("soon")
	p.Done()
	if a := (&App{Stderr: &out}); a.WatchProgress().to != nil || out.Len() > 0 {
		t.Errorf("said %q", out.String())
	}
}

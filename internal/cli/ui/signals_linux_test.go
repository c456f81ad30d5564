package ui

import (
	"os/signal"
	"syscall"
	"testing"
)

// What nohup ignores does not end a command that starts servers. What it does not ignore does.
func TestIgnoredSignalsEndNothing(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	ctx, stop := UntilSignal()
	defer stop()
	if !signal.Ignored(syscall.SIGHUP) {
		t.Error("SIGHUP is not ignored any more")
	}
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
}

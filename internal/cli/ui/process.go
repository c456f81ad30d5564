package ui

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// UntilSignal returns a context that ends with a signal that ends a program, except those that this
// process ignores, as under nohup.
func UntilSignal() (context.Context, context.CancelFunc) {
	var ends []os.Signal
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			ends = append(ends, sig)
		}
	}
	if len(ends) == 0 { // no signal would mean all of them
		return context.WithCancel(context.Background())
	}
	return signal.NotifyContext(context.Background(), ends...)
}

// OnThisMachine runs something that starts servers on this machine, until a signal ends its
// context. It passes on the path of this binary, and dir, which it creates if necessary. If dir is
// empty, it creates a temporary directory and removes it at the end.
func OnThisMachine(dir, pattern string, run func(ctx context.Context, binary, dir string) error) error {
	ctx, stop := UntilSignal()
	defer stop()
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	if dir != "" {
		err = os.MkdirAll(dir, 0o700)
	} else if dir, err = os.MkdirTemp("", pattern); err == nil {
		defer os.RemoveAll(dir)
	}
	if err != nil {
		return err
	}
	return run(ctx, binary, dir)
}

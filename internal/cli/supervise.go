package cli

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// statusEvery is how often the state of a server is looked at, to be told to systemd.
const statusEvery = time.Second

// supervised is a server as the supervisor of its process sees it.
type supervised interface {
	// Alive returns nil if the loop of the server takes calls.
	Alive(ctx context.Context) error
	// State is what the server does, for people.
	State() string
}

// supervise tells systemd, if that has started this process and asks for it, that the
// server takes clients, what it does, and that it lives. It returns what tells that the
// server stops.
func supervise(s supervised, log *slog.Logger) (stopping func()) {
	tell := func(state string) bool {
		sent, err := daemon.SdNotify(false, state)
		if err != nil {
			log.Warn("systemd could not be told the state of the server", "state", state, "err", err)
		}
		return sent
	}
	if !tell(daemon.SdNotifyReady + "\nSTATUS=" + s.State()) {
		return func() {}
	}
	timeout, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("the watchdog of systemd gets no sign of life", "err", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		attend(ctx, s, timeout, tell)
	}()
	return func() {
		cancel()
		<-done
		tell(daemon.SdNotifyStopping)
	}
}

// attend tells the state whenever it has changed, and that the server lives: three times
// within the timeout of the watchdog, if there is one.
func attend(ctx context.Context, s supervised, timeout time.Duration, tell func(string) bool) {
	every := statusEvery
	if timeout > 0 {
		every = min(every, timeout/3)
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	told := s.State()
	for fed := time.Now(); ; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if state := s.State(); state != told {
			tell("STATUS=" + state)
			told = state
		}
		if timeout == 0 || time.Since(fed) < timeout/3-every/2 {
			continue
		}
		asked, cancel := context.WithTimeout(ctx, timeout/3)
		if s.Alive(asked) == nil {
			tell(daemon.SdNotifyWatchdog)
			fed = time.Now()
		}
		cancel()
	}
}

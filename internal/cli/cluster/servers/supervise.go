package servers

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// statusEvery is how often the state of a server is checked, to report it to systemd.
const statusEvery = time.Second

// supervised is a server, from the point of view of systemd.
type supervised interface {
	// Alive returns nil if the main loop of the server answers.
	Alive(ctx context.Context) error
	// State describes what the server does, for people.
	State() string
}

// supervise reports to systemd, if systemd started this process and asks for it: that the server
// takes clients, its state, and that it is alive. The function that it returns reports that the
// server stops.
func supervise(s supervised, log *slog.Logger) (stopping func()) {
	tell := func(state string) bool {
		sent, err := daemon.SdNotify(false, state)
		if err != nil {
			log.Warn("report to systemd failed", "state", state, "err", err)
		}
		return sent
	}
	if !tell(daemon.SdNotifyReady + "\nSTATUS=" + s.State()) {
		return func() {}
	}
	timeout, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("watchdog of systemd not served", "err", err)
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

// attend reports each change of the state, and that the server is alive: three times within the
// timeout of the watchdog, if there is one.
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

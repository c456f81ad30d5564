package wrap

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/alike"
)

// NewDrop returns the command drop.
func NewDrop(a *ui.App) *cobra.Command {
	return &cobra.Command{
		Use:   "drop FILE",
		Short: "End a hold of conclave hold",
		Long: `FILE is the --status-file of a conclave hold on this machine. conclave ends that process and waits
until it has released the lock.

The exit status tells whether the lock was held until then. If it is 120, the lock was lost
or released before: what was done under it was not protected until the end. FILE then has the
reason and the time. This command requires Linux.`,
		Example: `  conclave hold deploy --background --max 1h --status-file /run/deploy.json
  echo "the work"
  conclave drop /run/deploy.json                         # status 120 if the lock was lost`,
		Annotations: ui.Statuses("0 the lock was held until now, and is released", "120 the lock was lost or released before"),
		Args:        ui.Takes("FILE"),
		RunE:        func(_ *cobra.Command, args []string) error { return drop(args[0]) },
	}
}

// dropTimeout bounds the wait for the end of a hold. It is longer than a release may take.
const dropTimeout = releaseTimeout + 5*time.Second

// drop ends the hold that a status file describes.
func drop(path string) error {
	if path == "" {
		return fmt.Errorf("FILE: %q: must name a file", path)
	}
	r, err := readRecord(path)
	if err != nil {
		return err
	}
	own, _ := os.Hostname()
	switch {
	case r.Program != "":
		return fmt.Errorf("%s: %s %s is held for a command; send TERM to process %d to end that", path, r.Class, alike.Quoted(r.Name), r.PID)
	case r.State != stateHeld:
		return r.early()
	case r.Host != own:
		return fmt.Errorf("%s: %s %s is held on host %q; run conclave drop there", path, r.Class, alike.Quoted(r.Name), r.Host)
	}
	p, err := r.process()
	if err == nil {
		err = p.Terminate()
	}
	if errors.Is(err, os.ErrProcessDone) {
		return r.early()
	}
	if err != nil {
		return fmt.Errorf("process %d: %w", r.PID, aboutProcess(err))
	}
	select {
	case <-p.Ended():
	case <-time.After(dropTimeout):
		return fmt.Errorf("process %d: did not end within %v", r.PID, dropTimeout)
	}
	if r, err = readRecord(path); err != nil {
		return err
	}
	if r.Outcome != released || r.Reason != bySignal {
		return r.early()
	}
	return nil
}

// early says how a hold has ended before it was dropped.
func (r *record) early() error {
	how := string(r.Outcome)
	switch {
	case r.Outcome == "":
		return ui.Failure(ui.StatusLost, "%s %s: lost: process %d, which held it, has ended without a release", r.Class, alike.Quoted(r.Name), r.PID)
	case r.Outcome == released && r.Reason == byMax:
		how = "released, because --max was over,"
	case r.Outcome == released && r.Reason == byProcess:
		how = "released, because the process of --while-pid had ended,"
	case r.Granted == nil:
		return ui.Failure(ui.StatusLost, "%s %s: not acquired: %s", r.Class, alike.Quoted(r.Name), ui.Shown(r.Error))
	}
	if r.Ended == nil {
		return ui.Failure(ui.StatusLost, "%s %s: %s before", r.Class, alike.Quoted(r.Name), how)
	}
	return ui.Failure(ui.StatusLost, "%s %s: %s at %s", r.Class, alike.Quoted(r.Name), how, r.Ended.Format(time.RFC3339))
}

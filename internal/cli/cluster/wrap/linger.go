package wrap

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// lingering has the flags that keep a name closed after a hold.
type lingering struct{ atLeast, delay ui.Duration }

func (l *lingering) register(flags *pflag.FlagSet) {
	flags.Var(&l.atLeast, "at-least", "nobody else gets it until this long after the grant, up to 168h (default: not)")
	flags.Var(&l.delay, "delay-after-loss", "nobody else gets it until this long after a loss, up to 168h (default: at once)")
}

func (l *lingering) check(shared bool) error {
	for _, f := range []struct {
		name string
		d    ui.Duration
	}{{"--at-least", l.atLeast}, {"--delay-after-loss", l.delay}} {
		switch {
		case f.d < 0 || time.Duration(f.d) > conclave.MaxLinger:
			return ui.Failure(ui.StatusError, "%s: %v: must be between 0s and %v", f.name, &f.d, time.Duration(conclave.MaxLinger))
		case f.d > 0 && shared:
			return ui.Exclude("--shared", f.name)
		}
	}
	return nil
}

func (l *lingering) options() (options []conclave.LingerOption) {
	if l.atLeast > 0 {
		options = append(options, conclave.AtLeast(time.Duration(l.atLeast)))
	}
	if l.delay > 0 {
		options = append(options, conclave.DelayAfterLoss(time.Duration(l.delay)))
	}
	return options
}

// lockOptions returns the options of a lock that flags set.
func (s *seeker) lockOptions(sharing *lockSharing, flags interface{ Changed(string) bool }) ([]conclave.LockOption, error) {
	options, err := sharing.options(flags)
	for _, option := range s.lingering.options() {
		options = append(options, option)
	}
	return options, err
}

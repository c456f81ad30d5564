package cli

import (
	"github.com/conclave-io/conclave/lab/scenario"
)

// follow reports on the runs of a scenario until done.
func follow(p *progress, sc *scenario.Scenario) {
	if !p.shown() {
		return
	}
	cfg := sc.Config()
	sc.Progress = func(at scenario.Progress) {
		p.report("%s, n = %d: %d events, %d entries, at %s D", cfg.Spec.Name, cfg.Process.N, at.Events, at.Entries,
			short(float64(at.Time)/float64(cfg.Process.D())))
	}
}

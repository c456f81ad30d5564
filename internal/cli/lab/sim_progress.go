package lab

import (
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/lab/scenario"
)

// follow reports on the runs of a scenario until done.
func follow(p *ui.Progress, sc *scenario.Scenario) {
	if !p.Shown() {
		return
	}
	cfg := sc.Config()
	sc.Progress = func(at scenario.Progress) {
		p.Report("%s, n = %d: %d events, %d entries, at %s D", cfg.Spec.Name, cfg.Process.N, at.Events, at.Entries,
			ui.Short(float64(at.Time)/float64(cfg.Process.D())))
	}
}

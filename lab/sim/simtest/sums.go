package simtest

import (
	"fmt"
	"time"

	"github.com/conclave-io/conclave/internal/longrun"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// sums has the totals of the schedules of a plan, for the report of a long run.
type sums struct {
	events  uint64
	entries int
	began   time.Time
}

func (s *sums) add(r *sim.Result) {
	s.events += r.Events
	s.entries += r.Entries
}

func (s *sums) note(p *Plan, schedules int, happened tally) error {
	crashes := 0
	for _, mode := range p.modes() {
		crashes += happened[tallied{mode, process.CrashAny}]
	}
	figures := []longrun.Figure{
		{Name: "schedules", Value: float64(schedules)}, {Name: "events", Value: float64(s.events)},
		{Name: "entries", Value: float64(s.entries)}, {Name: "crashes", Value: float64(crashes)},
		{Name: "seconds", Value: time.Since(s.began).Seconds()},
	}
	return longrun.Note(fmt.Sprintf("%s, N = %d", p.Spec.Name, p.Process.N), figures...)
}

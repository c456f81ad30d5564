package cli

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/conclave-io/conclave"
)

// clockView is the clock of another server. Drift is how much faster it runs, if that is known:
// 0.01 is 1 %.
type clockView struct {
	Server     uint64   `json:"server"`
	Offset     string   `json:"offset"`
	Error      string   `json:"error"`
	Drift      *float64 `json:"drift,omitempty"`
	DriftError *float64 `json:"drift_error,omitempty"`
	Over       string   `json:"over,omitempty"`
	Notable    bool     `json:"notable,omitempty"`
}

func clocksJSON(all []conclave.Clock) []clockView {
	list := []clockView{}
	for i := range all {
		c := &all[i]
		one := clockView{Server: c.Server, Offset: c.Offset.String(), Error: c.Error.String(), Notable: c.Notable}
		if c.Over > 0 {
			one.Drift, one.DriftError, one.Over = &c.Drift, &c.DriftError, c.Over.String()
		}
		list = append(list, one)
	}
	return list
}

// writeClocks writes the clocks of other servers, and warnings about them.
func writeClocks(w io.Writer, s conclave.Status) error {
	fmt.Fprintf(w, "\nclocks, compared with that of server %d\n", s.Server)
	t := newTable(w, "SERVER", "AHEAD BY", "DRIFT")
	for i := range s.Clocks {
		c := &s.Clocks[i]
		ahead, drift := "-", "-"
		lost := slices.ContainsFunc(s.Members, func(m conclave.Member) bool { return m.ID == c.Server && !m.Connected && !m.Leader })
		if !lost { // otherwise the estimate is of earlier
			ahead = fmt.Sprintf("%v +- %v", rounded(c.Offset), rounded(c.Error))
		}
		if !lost && c.Over > 0 {
			drift = fmt.Sprintf("%.4f %% +- %.4f %%", 100*c.Drift, 100*c.DriftError)
		}
		t.row(number(c.Server), ahead, drift)
	}
	if err := t.flush(); err != nil {
		return err
	}
	for i := range s.Clocks {
		if c := &s.Clocks[i]; c.Notable {
			fmt.Fprintf(w, "WARNING: the clocks of servers %d and %d drift apart by %.2f %%; leases are safe up to 10 %%\n", s.Server, c.Server, 100*c.Drift)
		}
	}
	return nil
}

// rounded rounds a duration for people.
func rounded(d time.Duration) time.Duration {
	if d.Abs() < time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d.Round(10 * time.Microsecond)
}

package cluster

import (
	"fmt"
	"io"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// StaysClosed says who held a place that stays closed, and until when it does.
func StaysClosed(c *conclave.Closed) string {
	who := "on " + ui.Shown(c.Host)
	if c.Owner != "" {
		who += " for " + ui.Shown(c.Owner)
	}
	return fmt.Sprintf("ran %s at %s, closed until about %s", who, clock(c.Since), clock(c.Until))
}

// clock returns a time of day, and with it the date if that is another one than today.
func clock(t time.Time) string {
	t = t.Local()
	if now := time.Now(); t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// tellClosed writes a line for each place that stays closed.
func tellClosed(w io.Writer, r *conclave.Resource) (err error) {
	for i := range r.Closed {
		_, err = fmt.Fprintf(w, "fence %d: %s\n", r.Closed[i].Fence, StaysClosed(&r.Closed[i]))
	}
	return err
}

// anyClosed reports whether some place of a resource stays closed.
func anyClosed(r conclave.Resource) bool { return len(r.Closed) > 0 }

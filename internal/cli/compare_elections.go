package cli

import (
	"fmt"
	"io"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/measure"
)

// runElections measures elections instead of locks.
func (c *comparison) runElections() error {
	specs, err := c.among(measure.Elections(algorithm.All))
	if err != nil {
		return err
	}
	if c.sweep != nil {
		c.sizes = c.sweep
	}
	for _, n := range c.sizes {
		if n < 2 || n > largest {
			return fmt.Errorf("--processes: %d: must be between 2 and %d with --elections", n, largest)
		}
	}
	if c.plot != "" {
		return exclude("--plot", "--elections")
	}
	rows, err := c.measureWith(measure.Election, specs, c.sizes)
	if err != nil {
		return err
	}
	return c.print(rows, func(w io.Writer) error {
		if c.markdown {
			return measure.ElectionsMarkdown(w, rows)
		}
		return measure.Text(w, rows)
	})
}

package cli

import (
	"fmt"
	"io"

	"github.com/conclave-io/conclave/lab/measure"
)

// largestDetectors bounds the number of processes: each figure is the mean of many runs in which
// all processes keep sending to each other.
const largestDetectors = 50

// runDetectors prints what failure detectors cost.
func (c *comparison) runDetectors() error {
	if c.names != nil {
		return exclude("--detectors", "--algorithms")
	}
	if c.sweep != nil {
		c.sizes = c.sweep
	}
	var rows []measure.Row
	for _, n := range c.sizes {
		if n < 3 || n > largestDetectors {
			return fmt.Errorf("--processes: %d: must be between 3 and %d with --detectors", n, largestDetectors)
		}
		more, err := measure.Detectors(n)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	return c.print(rows, func(w io.Writer) error {
		if c.markdown {
			return measure.DetectorsMarkdown(w, rows)
		}
		return measure.DetectorsText(w, rows)
	})
}

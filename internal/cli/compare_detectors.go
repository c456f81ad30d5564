package cli

import (
	"fmt"
	"io"

	"github.com/conclave-io/conclave/lab/measure"
)

// largestDetectors is the most processes that compare --detectors measures: each
// figure is the mean of many runs in which everyone sends to everyone for ever.
const largestDetectors = 50

// runDetectors prints what failure detectors cost.
func (c *comparison) runDetectors() error {
	if c.names != nil || c.plot != "" {
		return fmt.Errorf("--detectors measures all detectors and draws nothing: leave --algorithms and --plot away")
	}
	if c.sweep != nil {
		c.sizes = c.sweep
	}
	var rows []measure.Row
	for _, n := range c.sizes {
		if n < 3 || n > largestDetectors {
			return fmt.Errorf("%d processes: give 3 to %d", n, largestDetectors)
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

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/internal/bench"
)

// runLive measures the algorithms between real servers.
func (c *comparison) runLive(sizes given) error {
	if !sizes.Changed("processes") {
		c.sizes = []int{3}
	}
	switch {
	case c.plot != "":
		return exclude("--plot", "--live")
	case len(c.sizes) != 1:
		return fmt.Errorf("--processes: %v: expected one number with --live", c.sizes)
	case c.sizes[0] < 3 || c.sizes[0] > bench.MaxServers:
		return fmt.Errorf("--processes: %d: must be between 3 and %d with --live", c.sizes[0], bench.MaxServers)
	}
	specs, err := c.among(algorithm.Served)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	dir, clear, err := workDir("", "conclave-compare-")
	if err != nil {
		return err
	}
	defer clear()
	report, err := bench.Live(ctx, bench.LiveConfig{Binary: binary, Dir: dir, Servers: c.sizes[0], Specs: specs, Progress: c.stderr})
	if err != nil {
		return err
	}
	return c.printLive(report)
}

func (c *comparison) printLive(report bench.LiveReport) error {
	err := c.print(report, func(w io.Writer) error {
		if c.markdown {
			return report.Markdown(w)
		}
		return report.Text(w)
	})
	if broken := report.Broken(); err == nil && len(broken) > 0 {
		err = errors.New("messages per entry: " + broken[0].Algorithm + " differs from its formula; see the rows marked (!)")
	}
	return err
}

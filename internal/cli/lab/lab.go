// Package lab has the commands of the laboratory: they simulate, check, compare and show algorithms, and
// contact no cluster.
package lab

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/lab/host"
	"github.com/conclave-io/conclave/web"
)

// Limits of the lab, in bytes.
const (
	labMemory   = 2 << 30   // memory of its runs
	labFileSize = 64 * 1024 // size of a scenario in a URL
)

// NewLab returns the command lab.
func NewLab(a *ui.App) *cobra.Command {
	var listen, export string
	cmd := &cobra.Command{
		Use:   "lab [FILE]",
		Short: "Step through runs of the algorithms in a browser",
		Long: `The command prints a URL to open in a browser on this machine, and runs until Ctrl-C. The lab
runs scenario files. It shows each message, the state of every process after each step, and the
rules that were applied. With FILE, it opens that scenario; - is standard input. Otherwise it shows
all scenarios that come with conclave.

The lab listens on 127.0.0.1 only. The URL contains a token that the lab requires.

With --export, the command writes the lab as a static site instead, and exits. Any file server
can serve the site; the scenarios run in the browser. This requires a binary from a release or
from make build: go run and go install leave out the engine for browsers.`,
		Annotations: ui.Statuses("0 stopped by Ctrl-C, or the site is written"),
		Example: `  conclave lab
  conclave lab lab/scenarios/maekawa-deadlock.yaml
  conclave lab --export site`,
		Args: ui.AtMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if export == "" {
				return openLab(a, cmd, args, listen)
			}
			if len(args) > 0 {
				return ui.Exclude("--export", "the argument FILE")
			}
			if err := web.Export(export); err != nil {
				return err
			}
			a.Say("the site is in %s; its start page is %s/lab/", export, export)
			return nil
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "listen at this loopback `address`; port 0 selects a free port")
	cmd.Flags().StringVar(&export, "export", "", "write a static site to this `folder` instead")
	cmd.MarkFlagsMutuallyExclusive("export", "listen")
	return ui.StreamsArguments(cmd)
}

// openLab serves the lab until a signal ends it.
func openLab(a *ui.App, cmd *cobra.Command, args []string, listen string) error {
	place, err := labPlace(cmd, args)
	if err != nil {
		return err
	}
	return serveLab(a, place, listen)
}

// openRun serves the lab until a signal ends it. It first shows a run after a record.
func openRun(a *ui.App, text []byte, record int) error {
	place, err := placeOf("the run", text)
	if err != nil {
		return err
	}
	return serveLab(a, fmt.Sprintf("%s?t=%d", place, record), "127.0.0.1:0")
}

func serveLab(a *ui.App, place, listen string) error {
	page, err := web.Handler()
	if err != nil {
		return err
	}
	ctx, stop := ui.UntilSignal()
	defer stop()
	listener, err := listenLoopback(ctx, listen)
	if err != nil {
		return err
	}
	room, restore := roomInCgroup()
	defer restore()
	h, err := host.New(listener, host.Options{
		Page: page, Build: ui.ReadBuild().Version, Cores: runtime.NumCPU(), Memory: labMemory, Room: room,
	})
	if err != nil {
		return err
	}
	a.Say("open this URL in a browser and keep it private; press Ctrl-C to stop the lab:")
	fmt.Fprintln(a.Stdout, h.URL(place))
	return h.Serve(ctx)
}

func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--listen: %q: expected an address and a port, such as 127.0.0.1:8080", address)
	}
	if !resolved.IP.IsLoopback() {
		return nil, fmt.Errorf("--listen: %q: must be a loopback address such as 127.0.0.1", address)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", resolved.String())
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	return listener, nil
}

// labPlace returns the part of the URL that selects what the page shows first.
func labPlace(cmd *cobra.Command, args []string) (string, error) {
	if len(args) == 0 {
		return "1/gallery", nil
	}
	_, text, err := readScenario(cmd, args[0])
	if err != nil {
		return "", err
	}
	return placeOf(args[0], text)
}

// placeOf returns that part for a scenario.
func placeOf(name string, text []byte) (string, error) {
	if len(text) > labFileSize {
		return "", fmt.Errorf("%s: %d bytes: must have at most %d bytes for the lab", name, len(text), labFileSize)
	}
	packed, err := packText(text)
	if err != nil {
		return "", err
	}
	return "1/run/~" + packed, nil
}

// packText packs a text for a URL: deflated, in base64url.
func packText(text []byte) (string, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := w.Write(text); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(b.Bytes()), nil
}

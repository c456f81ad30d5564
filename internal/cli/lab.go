package cli

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/lab/host"
	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/web"
)

// Limits of the lab.
const (
	labMemory   = 2 << 30   // bytes that its runs may take
	labFileSize = 64 * 1024 // bytes of a scenario in a URL
)

func newLab(a *app) *cobra.Command {
	var listen, export string
	cmd := &cobra.Command{
		Use:   "lab [FILE]",
		Short: "Open the laboratory in a browser: step through runs of the algorithms",
		Long: `Serve the lab to a browser on this machine, and print the URL to open. The lab runs
scenario files: it shows who sent what to whom, the state of every process after each
step, and the rules that were applied. With FILE, it opens that scenario; otherwise it
shows a gallery of all scenarios that come with conclave.

The lab does not contact a cluster. It listens on 127.0.0.1 only, and the URL holds a
token without which nobody can use it. It ends with Ctrl-C.

With --export, write the lab as a static site instead, for any server of files. Its
scenarios run in the browser of whoever opens it. This needs a binary from a release
or from make build: go run and go install leave out the engine for browsers.

Exit status: 0 if it was ended by Ctrl-C, 125 if the file or the flags are wrong.`,
		Example: `  conclave lab
  conclave lab scenarios/maekawa-deadlock.yaml
  conclave lab --export site`,
		Args: atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if export == "" {
				return a.lab(strings.Join(args, ""), listen)
			}
			if len(args) > 0 || cmd.Flags().Changed("listen") {
				return fmt.Errorf("--export: cannot be combined with a file or --listen")
			}
			if err := web.Export(export); err != nil {
				return err
			}
			a.say("the lab is in %s; its page is %s/lab/", export, export)
			return nil
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "listen at this loopback `address`; port 0 is a free one")
	cmd.Flags().StringVar(&export, "export", "", "write a static site to this `folder` instead")
	return cmd
}

// lab serves the lab until a signal ends it.
func (a *app) lab(file, listen string) error {
	place, err := labPlace(file)
	if err != nil {
		return err
	}
	return a.serveLab(place, listen)
}

// openRun serves the lab until a signal ends it. It begins with a run, after a record.
func (a *app) openRun(text []byte, record int) error {
	place, err := placeOf("the run", text)
	if err != nil {
		return err
	}
	return a.serveLab(fmt.Sprintf("%s?t=%d", place, record), "127.0.0.1:0")
}

func (a *app) serveLab(place, listen string) error {
	page, err := web.Handler()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	listener, err := listenLoopback(ctx, listen)
	if err != nil {
		return err
	}
	h, err := host.New(listener, host.Options{
		Page: page, Build: readVersion().Version, Cores: runtime.NumCPU(), Memory: labMemory,
	})
	if err != nil {
		return err
	}
	a.say("the lab is open until Ctrl-C; open this URL, and keep it private:")
	fmt.Fprintln(a.stdout, h.URL(place))
	return h.Serve(ctx)
}

func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--listen: %q: must be an address and a port, such as 127.0.0.1:8080", address)
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

// labPlace returns the part of the URL that says what the page shows first.
func labPlace(file string) (string, error) {
	if file == "" {
		return "1/gallery", nil
	}
	if _, err := scenario.Load(file); err != nil {
		return "", err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return placeOf(file, text)
}

// placeOf returns that part for a scenario.
func placeOf(name string, text []byte) (string, error) {
	if len(text) > labFileSize {
		return "", fmt.Errorf("%s: %d bytes: the lab opens files of at most %d", name, len(text), labFileSize)
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

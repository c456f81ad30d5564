package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/local"
	"github.com/conclave-io/conclave/internal/service/version"
	"github.com/conclave-io/conclave/lab/measure"
	"github.com/conclave-io/conclave/process"
)

// GuardsConfig says which algorithms to measure between real servers.
type GuardsConfig struct {
	// Binary is the conclave binary. Its servers have to read version.Guarded.
	Binary string
	// Dir takes the data of the servers.
	Dir string
	// Servers is how many there are, 2 to MaxServers.
	Servers int
	Specs   []*process.Spec
	// Rounds is how often each client enters while it is measured, idle and saturated [4].
	Rounds int
	// Progress receives a line for each algorithm.
	Progress io.Writer
}

// MaxServers is how many servers a cluster on one machine has at most here.
const MaxServers = 9

// GuardsReport is what algorithms cost when servers run them, beside agreement in the same
// run.
type GuardsReport struct {
	Servers int `json:"n"`
	// PingMS is the median round trip of an empty call.
	PingMS   float64      `json:"ping_ms"`
	Messages []GuardsRow  `json:"messages"`
	Times    []GuardsTime `json:"times"`
}

// GuardsRow is the messages for an entry: by the formula, in the simulator, and between
// servers.
type GuardsRow struct {
	measure.Row
	Simulated float64 `json:"simulated"`
}

// GuardsTime is how long things take under one guard: medians.
type GuardsTime struct {
	// Guard is an algorithm, with its mode if that is not the default one, or agreement.
	Guard string `json:"guard"`
	// AcquireMS is the time to acquire if nobody else asks, from another home than the
	// last, and RoundTrips how many times PingMS that is.
	AcquireMS  float64 `json:"acquire_ms"`
	RoundTrips float64 `json:"round_trips"`
	// HandoffMS is the time from the call of release to the next holder if all wait.
	HandoffMS float64 `json:"handoff_ms"`
}

// Guards measures them. It takes about a second for each algorithm.
func Guards(ctx context.Context, cfg GuardsConfig) (report GuardsReport, err error) {
	if cfg.Rounds == 0 {
		cfg.Rounds = 4
	}
	l := &guardsBench{GuardsConfig: cfg, report: GuardsReport{Servers: cfg.Servers}}
	defer func() { err = errors.Join(err, l.end()) }()
	if err := l.begin(ctx); err != nil {
		return GuardsReport{}, err
	}
	if l.report.PingMS, err = RoundTrip(ctx, conclave.Config{Servers: l.cluster.Addresses()}, time.Second); err != nil {
		return GuardsReport{}, err
	}
	if err := l.measureAgreement(ctx); err != nil {
		return GuardsReport{}, fmt.Errorf("agreement: %w", err)
	}
	for _, spec := range cfg.Specs {
		modes := []string{""}
		if spec.Name == "ricart-agrawala" {
			modes = append(modes, "keep") // its costs are others
		}
		for _, mode := range modes {
			if err := l.measureGuard(ctx, spec, mode); err != nil {
				return GuardsReport{}, fmt.Errorf("%s: %w", titled(spec.Name, mode), err)
			}
		}
	}
	if err := l.measureAgreement(ctx); err != nil { // the machine may have changed its pace
		return GuardsReport{}, fmt.Errorf("agreement: %w", err)
	}
	return l.report, nil
}

func titled(name, mode string) string {
	if mode == "" {
		return name
	}
	return name + " mode=" + mode
}

// guardsBench is a cluster with one client at each home; the ranks of algorithms are those of servers.
type guardsBench struct {
	GuardsConfig
	*Homes
	cluster *local.Cluster
	agreed  *guardRun
	report  GuardsReport
}

func (l *guardsBench) begin(ctx context.Context) (err error) {
	// A seat that ends, on a busy machine, moves its client, and two clients of one home send fewer messages.
	flags := []string{"--view-lease", "5s"}
	if l.cluster, err = local.Start(local.Config{Binary: l.Binary, Dir: l.Dir, Servers: l.GuardsConfig.Servers, Flags: flags}); err != nil {
		return err
	}
	cfg := conclave.Config{Servers: l.cluster.Addresses(), TTL: time.Minute, Program: "compare"}
	if l.Homes, err = DialHomes(ctx, cfg, l.cluster.Addresses()); err != nil {
		return errors.Join(err, l.cluster.Died())
	}
	if err := l.cluster.Raise(ctx, l.Control, version.Guarded); err != nil {
		return err
	}
	return l.settle(ctx)
}

// stay is a prefix that an algorithm guards all the time, so that the servers keep their
// seats, and the clients their homes, while other guards come and go.
const stay = "compare/stay/"

// settle waits until each client has its own home.
func (l *guardsBench) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := l.guard(ctx, stay, admin.Use{Algorithm: "central"}); err != nil {
		return err
	}
	for i, c := range l.Clients {
		held, err := c.Lock(ctx, stay+"lock")
		if err != nil {
			return err
		}
		v, err := admin.New(l.Control).Homes(ctx)
		if err == nil && v.Members[i].Home.Sessions == 0 {
			err = fmt.Errorf("client %d is not at home at server %d", i+1, i+1)
		}
		if err := errors.Join(err, held.Unlock(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func (l *guardsBench) end() (err error) {
	if l.Homes != nil {
		l.Close()
	}
	if l.cluster != nil {
		err = l.cluster.Stop()
	}
	return err
}

// measureAgreement measures under agreement, once more each time.
func (l *guardsBench) measureAgreement(ctx context.Context) error {
	if l.agreed == nil {
		l.agreed = &guardRun{guardsBench: l, name: "compare/agreement/lock", askers: l.Clients}
		l.report.Times = append(l.report.Times, GuardsTime{})
	}
	err := l.agreed.both(ctx)
	if err == nil {
		l.report.Times[0] = l.agreed.times("agreement")
	}
	return err
}

// measureGuard measures under an algorithm, and removes it afterwards: machines that are
// left over would continue sending.
func (l *guardsBench) measureGuard(ctx context.Context, spec *process.Spec, mode string) error {
	rows, err := measure.Served(spec, l.GuardsConfig.Servers, mode)
	if err != nil {
		return err
	}
	prefix := "compare/" + spec.Name + "/"
	run := &guardRun{guardsBench: l, rows: rows, prefix: prefix, name: prefix + "lock"}
	for _, rank := range measure.Requesters(spec, l.GuardsConfig.Servers) {
		run.askers = append(run.askers, l.Clients[rank])
	}
	if err := l.guard(ctx, prefix, admin.Use{Algorithm: spec.Name, Options: optionsOf(mode)}); err != nil {
		return err
	}
	if err := run.both(ctx); err != nil {
		return err
	}
	for i, row := range rows {
		l.report.Messages = append(l.report.Messages, GuardsRow{row.Instead(run.messages[i]), row.Measured})
	}
	l.report.Times = append(l.report.Times, run.times(titled(spec.Name, mode)))
	return l.guard(ctx, prefix, admin.Use{})
}

// optionsOf are those with which the formulas hold that measure.Served returns: the first
// member coordinates, whose clients do not ask.
func optionsOf(mode string) string {
	options := "coordinator=first"
	if mode != "" {
		options += ",mode=" + mode
	}
	return options
}

// guard is Guard for servers that may end.
func (l *guardsBench) guard(ctx context.Context, prefix string, use admin.Use) error {
	return l.orDied(l.Guard(ctx, prefix, use))
}

// orDied adds to an error which servers have ended.
func (l *guardsBench) orDied(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(err, l.cluster.Died())
}

// middle is the median, in ms.
func middle(took []time.Duration) float64 {
	slices.Sort(took)
	return round(took[len(took)/2].Seconds() * 1e3)
}

// guardsTable is one of the tables of a GuardsReport.
type guardsTable struct {
	title string
	rows  [][]string
}

func (r *GuardsReport) tables() []guardsTable {
	messages := guardsTable{title: "Messages per entry", rows: [][]string{{"algorithm", "regime", "formula", fmt.Sprint("= for N = ", r.Servers), "simulated", "measured"}}}
	for i := range r.Messages {
		row := &r.Messages[i]
		formula, expected := row.Expected()
		measured := figure(row.Measured)
		if !row.Within() {
			measured += " (!)"
		}
		messages.rows = append(messages.rows, []string{titled(row.Algorithm, row.Mode), row.Regime, formula, expected, figure(row.Simulated), measured})
	}
	times := guardsTable{title: fmt.Sprintf("Times: medians in ms, and round trips of %s ms", figure(r.PingMS)), rows: [][]string{{"guard", "acquire, idle", "round trips", "hand-off", "of agreement's"}}}
	for _, t := range r.Times {
		times.rows = append(times.rows, []string{t.Guard, figure(t.AcquireMS), figure(t.RoundTrips), figure(t.HandoffMS), fmt.Sprintf("%.2f", t.HandoffMS/r.Times[0].HandoffMS)})
	}
	return []guardsTable{messages, times}
}

func figure(v float64) string { return strconv.FormatFloat(round(v), 'f', -1, 64) }

const guardsLegend = `Idle: the clients of different servers enter in turn, each when no message is in flight.
Saturated: all others wait whenever one is inside. The clients of the server that
coordinates do not ask. (!) marks a figure that differs from the formula; "-" means no formula.
Agreement sends log entries instead of messages of an algorithm.
`

const guardsIntro = `# What the algorithms send between servers, measured

Written by ` + "`make guards`" + ` on %[1]s: %[2]d servers, each with one client, as processes on one
machine with %[3]d processors, which had other work as well. Times differ between machines; messages do
not. [guards.md](guards.md) says which algorithm to choose.

`

// Text writes the report for a terminal.
func (r *GuardsReport) Text(w io.Writer) error {
	for _, t := range r.tables() {
		fmt.Fprintln(w, t.title)
		columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, row := range t.rows {
			fmt.Fprintln(columns, strings.Join(row, "\t"))
		}
		if err := columns.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	_, err := fmt.Fprint(w, guardsLegend)
	return err
}

// Markdown writes the report for a document.
func (r *GuardsReport) Markdown(w io.Writer) error {
	fmt.Fprintf(w, guardsIntro, time.Now().UTC().Format(time.DateOnly), r.Servers, runtime.NumCPU())
	for _, t := range r.tables() {
		fmt.Fprintf(w, "%s:\n\n", t.title)
		for i, row := range t.rows {
			fmt.Fprintf(w, "| %s |\n", strings.ReplaceAll(strings.Join(row, " | "), "*", `\*`))
			if i == 0 {
				fmt.Fprintln(w, "|"+strings.Repeat("---|", len(row)))
			}
		}
		fmt.Fprintln(w)
	}
	_, err := fmt.Fprint(w, guardsLegend)
	return err
}

// Broken returns the rows whose figure is not as the formula says.
func (r *GuardsReport) Broken() (broken []GuardsRow) {
	for _, row := range r.Messages {
		if !row.Within() {
			broken = append(broken, row)
		}
	}
	return broken
}

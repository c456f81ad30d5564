package measure

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/conclave-io/conclave/algorithm/detector/heartbeat"
	"github.com/conclave-io/conclave/algorithm/detector/phiaccrual"
	"github.com/conclave-io/conclave/algorithm/detector/swim"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// The metrics of failure detectors. Times are in units of D.
const (
	MessagesPerPeriod = "messages_per_period"
	DetectionTime     = "detection_time"     // from a crash until one process suspects
	DetectionTimeAll  = "detection_time_all" // from a crash until all processes suspect
	FalseSuspicions   = "false_suspicions"   // per process and 1,000 D
)

// detectorSetting is a detector with one option set, and the times that follow from it by
// theory, in D.
type detectorSetting struct {
	spec   *process.Spec
	option string
	value  int
	period float64
	// wait is the time from the last heartbeat of a process until it is suspected. It is 0
	// for SWIM, which has no heartbeats.
	wait float64
}

// detectorSettings returns the settings that the report compares.
func detectorSettings() []detectorSetting {
	var all []detectorSetting
	for _, spec := range []*process.Spec{heartbeat.Spec, heartbeat.Reliable} {
		for _, timeout := range []int{5, 7, 9, 13, 17} {
			all = append(all, detectorSetting{spec, "beat-timeout", timeout, 4, float64(timeout)})
		}
	}
	for _, level := range []int{1, 2, 4, 8, 12} {
		all = append(all, detectorSetting{phiaccrual.Spec, "phi", level, 4, phiaccrual.Wait(4, level)})
	}
	for _, period := range []int{5, 6, 8, 12, 16} {
		all = append(all, detectorSetting{spec: swim.Spec, option: "swim-period", value: period, period: float64(period)})
	}
	return all
}

// Detectors measures every failure detector with n processes, at least 3, for several values of
// its main option. Detection times and messages are measured with links that take exactly D.
// False suspicions are measured with links that lose one message in twenty and whose delay is
// exponentially distributed with the mean D.
func Detectors(n int) ([]Row, error) {
	if n < 3 {
		return nil, fmt.Errorf("processes: %d: must be at least 3", n)
	}
	var rows []Row
	for _, p := range detectorSettings() {
		more, err := p.measure(n)
		if err != nil {
			return nil, fmt.Errorf("%s with %s: %w", p.spec.Name, p.regime(), err)
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

func (p *detectorSetting) regime() string { return p.option + "=" + strconv.Itoa(p.value) }

func (p *detectorSetting) measure(n int) ([]Row, error) {
	messages, err := p.messages(n)
	if err != nil {
		return nil, err
	}
	first, all, err := p.detection(n)
	if err != nil {
		return nil, err
	}
	wrong, err := p.mistakes(n)
	if err != nil {
		return nil, err
	}
	return []Row{
		p.row(n, MessagesPerPeriod, p.messagesByTheory(n), nil, messages),
		p.row(n, DetectionTime, p.detectionByTheory(n), p.detectionBounds(n), first),
		p.row(n, DetectionTimeAll, nil, nil, all),
		p.row(n, FalseSuspicions, nil, nil, wrong),
	}, nil
}

func (p *detectorSetting) row(n int, metric string, theory *float64, bounds *[2]float64, measured float64) Row {
	r := Row{
		Algorithm: p.spec.Name, N: n, Regime: p.regime(), Metric: metric,
		Theory: theory, Bounds: bounds, Measured: measured, slack: 2e-3,
	}
	if metric == DetectionTime {
		r.slack = 0.1 // it is the mean of random runs
	}
	return r
}

func (p *detectorSetting) messagesByTheory(n int) *float64 {
	messages := float64(n * (n - 1))
	if p.spec == swim.Spec {
		messages = float64(2 * n)
	}
	return &messages
}

// detectionByTheory returns the expected detection time of a crash at a random time. On average
// the last heartbeat was sent half a period before. For SWIM see swim.Periods.
func (p *detectorSetting) detectionByTheory(n int) *float64 {
	mean := p.wait + 1 - p.period/2
	if p.spec == swim.Spec {
		mean = (swim.Periods(n)+0.5)*p.period - 1
	}
	return &mean
}

func (p *detectorSetting) detectionBounds(n int) *[2]float64 {
	if p.spec == swim.Spec {
		return &[2]float64{p.period - 1, 2*float64(n-1)*p.period - 1}
	}
	return &[2]float64{p.wait + 1 - p.period, p.wait + 1}
}

func (p *detectorSetting) config(n int, until float64) sim.Config {
	return sim.Config{
		Spec: p.spec,
		Process: process.Config{
			N: n, Delay: process.Millisecond,
			Options: []process.OptionValue{{Name: p.option, Value: strconv.Itoa(p.value)}},
		},
		Limit:  sim.Limit{Until: inD(until)},
		Judges: []sim.Judge{},
	}
}

func inD(d float64) process.Duration { return process.Duration(d * float64(process.Millisecond)) }

// messages returns the messages per period of a run without faults, measured over 100 periods. The
// run ends before the next period starts.
func (p *detectorSetting) messages(n int) (float64, error) {
	const periods = 100
	r, err := sim.Run(p.config(n, periods*p.period-0.5))
	if err != nil {
		return 0, err
	}
	return float64(r.Sent(process.Heartbeat)) / periods, nil
}

// crashes returns the number of runs over which a detection time is averaged, and the
// number of periods before the crash. Random algorithms need more runs. Algorithms that
// keep samples need more periods.
func (p *detectorSetting) crashes() (runs int, warm float64) {
	switch p.spec {
	case swim.Spec:
		return 400, 5
	case phiaccrual.Spec:
		return 60, 40
	}
	return 60, 5
}

// detection crashes a process, at moments spread evenly over the turns of the others. It returns
// the mean times until the first and the last process suspects it.
func (p *detectorSetting) detection(n int) (first, all float64, err error) {
	runs, warm := p.crashes()
	warm *= p.period
	turns := float64(n-1) * p.period
	if p.spec == swim.Spec {
		warm = math.Ceil(warm/turns) * turns
	}
	for i := range runs {
		at := warm + turns*(float64(i)+0.5)/float64(runs)
		f, a, err := p.crash(n, at, uint64(i))
		if err != nil {
			return 0, 0, err
		}
		first, all = first+f/float64(runs), all+a/float64(runs)
	}
	return first, all, nil
}

func (p *detectorSetting) crash(n int, at float64, seed uint64) (first, all float64, err error) {
	cfg := p.config(n, at+p.period+2*p.wait)
	if p.spec == swim.Spec {
		cfg = p.config(n, at+3*float64(n)*p.period)
	}
	cfg.Seed = seed
	victim := process.ID(seed % uint64(n))
	cfg.Faults = []sim.Fault{{At: inD(at), Kind: sim.Crash, Process: victim}}
	known := process.NewSet(n)
	cfg.Judges = []sim.Judge{func(w *sim.World) sim.Watcher {
		return sim.Watcher{Name: "detection", Watch: func(o *sim.Observation) string {
			if (o.Kind != sim.Suspected && o.Kind != sim.Failed) || o.Peer != victim || known.Has(o.Process) {
				return ""
			}
			after := float64(w.Now())/float64(process.Millisecond) - at
			if known.Empty() {
				first = after
			}
			all = after
			known.Add(o.Process)
			return ""
		}}
	}}
	if _, err := sim.Run(cfg); err != nil {
		return 0, 0, err
	}
	if known.Len() != n-1 {
		return 0, 0, fmt.Errorf("only %d of %d processes detected the crash at %v D", known.Len(), n-1, at)
	}
	return first, all, nil
}

// mistakes counts the suspicions in a run without a crash.
func (p *detectorSetting) mistakes(n int) (float64, error) {
	const length = 5000
	wrong := 0
	cfg := p.config(n, length)
	cfg.Links.Link = sim.Link{Delay: sim.Exponential(0, process.Millisecond), Drop: 0.05}
	cfg.Judges = []sim.Judge{func(*sim.World) sim.Watcher {
		return sim.Watcher{Name: "mistakes", Watch: func(o *sim.Observation) string {
			if o.Kind == sim.Suspected || o.Kind == sim.Failed && p.spec == heartbeat.Reliable {
				wrong++
			}
			return ""
		}}
	}}
	_, err := sim.Run(cfg)
	return float64(wrong) / float64(n) / (length / 1000), err
}

// detectorHead are the columns of the report on detectors.
var detectorHead = []string{"algorithm", "N", "setting", "messages per period", "= by theory", "first suspicion after, D", "= by theory, D", "at the earliest and latest, D", "everyone after, D", "false suspicions in 1,000 D"}

// detectorLines makes one line of the four figures of a setting.
func detectorLines(rows []Row) [][]string {
	var lines [][]string
	for i := 0; i+3 < len(rows); i += 4 {
		messages, first, all, wrong := &rows[i], &rows[i+1], &rows[i+2], &rows[i+3]
		lines = append(lines, []string{
			messages.Algorithm, strconv.Itoa(messages.N), strings.ReplaceAll(messages.Regime, "=", " = "),
			marked(messages), number(*messages.Theory),
			marked(first), number(*first.Theory), number(first.Bounds[0]) + " to " + number(first.Bounds[1]),
			marked(all), marked(wrong),
		})
	}
	return lines
}

func marked(r *Row) string {
	if r.Within() {
		return number(r.Measured)
	}
	return number(r.Measured) + " (!)"
}

// DetectorsText writes the report on failure detectors for a terminal.
func DetectorsText(w io.Writer, rows []Row) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, strings.Join(detectorHead, "\t"))
	for _, line := range detectorLines(rows) {
		fmt.Fprintln(columns, strings.Join(line, "\t"))
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\nSettings are in D, but for phi. False suspicions are those of one process, where links lose 1 in 20 and take D on average.")
	return err
}

const detectorIntro = `# What failure detectors cost, measured

This page measures every failure detector in the simulator with different timeouts: how soon it notices a
crash, how often it is wrong, and how many messages it sends.

Messages and detection times are measured on links that take exactly D. A detection time is the
mean over many runs. In each run one process crashes, at evenly spread moments. The first
suspicion is that of the first process that notices. False suspicions are counted per process and
1,000 D in a run without a crash. Its links lose one message in twenty, and their delays are exponentially
distributed with the mean D. None of the detectors is made for such links.

` + "`make detectors`" + ` writes this file. A test fails if it differs from what the simulator measures.

`

const detectorNotes = `
## How to read it

- *heartbeat* and *reliable* wait for a fixed time after each ALIVE, *beat-timeout*, with
  P = 4 D. A longer timeout is slower and more accurate. *heartbeat* increases its timeout with each
  mistake, so it makes few mistakes in the long run. *reliable* does not, because it must never
  be wrong, and must not be used on such links.
- *phi-accrual* derives its timeout from its level and from the past of the link. On
  regular links it waits little longer than P; on irregular links it waits longer by itself.
- *swim* sends 2N messages per period T, *swim-period*, whatever its timeout, where the others
  send N(N-1). The first suspicion comes (E+1/2) T - D after the crash, and E is about
  e/(e-1) = 1.58. Then the probes spread it to all. The suspected process may still refute
  its false suspicions; each is counted at every process that hears of it.
`

// DetectorsMarkdown writes the report on failure detectors for the documentation.
func DetectorsMarkdown(w io.Writer, rows []Row) error {
	fmt.Fprint(w, detectorIntro)
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(detectorHead, " | "), strings.Repeat("---|", len(detectorHead)))
	for _, line := range detectorLines(rows) {
		fmt.Fprintf(w, "| %s |\n", strings.Join(line, " | "))
	}
	_, err := fmt.Fprint(w, detectorNotes)
	return err
}

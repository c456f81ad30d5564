package sim

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// Reason is why a run ended.
type Reason uint8

// The reasons.
const (
	Quiet        Reason = iota + 1 // no event is left
	LimitReached                   // the limit of time, events or entries
	Stalled                        // a process waits and none has entered for very long
	Violated                       // a judge has found a violation
	SinkFailed                     // the trace could not be written
	Held                           // the schedule has no more turns, or one that cannot be taken
)

var reasonNames = [...]string{"", "quiet", "limit", "stalled", "violated", "sink", "held"}

// String returns the name of the reason in lower case.
func (r Reason) String() string { return reasonNames[r] }

// Violation is a violated property.
type Violation struct {
	Judge    string
	Property process.Property // 0: none of the list
	At       process.Duration
	Process  process.ID // where it was seen, or None
	Record   uint64     // the record of the trace at which it was seen
	Text     string
}

// String returns the violation in one line.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s (at t=%d, record %d)", v.Judge, v.Text, v.At, v.Record)
}

// Summary is the distribution of a measured figure.
type Summary struct {
	Count          int
	Mean, Min, Max float64
	Median, P99    float64 // accurate to 1/16 (6 %)
}

// Count is the number of messages of a type that were sent, each to one process.
type Count struct {
	Layer int
	Name  string
	Class process.Class
	Sent  uint64
}

// Leadership is what a process last announced.
type Leadership struct {
	Process process.ID
	Leader  process.ID // None: it has announced nobody
	Term    process.Term
	At      process.Duration
}

// Result is the result of a run. All counts and times are for the window From..To,
// after the warm-up; times are in units of D, the mean delay of a message.
type Result struct {
	Algorithm  string
	N          int
	Seed       uint64
	D          process.Duration
	Reason     Reason
	Time       process.Duration // when the run ended
	Events     uint64
	Records    uint64
	Violations []Violation

	From, To process.Duration
	Entries  int // completed
	Messages []Count

	// Wait is from request to entry; in the idle regime it is the client delay.
	Wait Summary
	// Response is from request to exit.
	Response Summary
	// Sync is from an exit to the next entry, if a process waited at that exit.
	Sync Summary
	// DelayMessages is the number of protocol messages sent by all processes from
	// request to entry: the delay on a medium that carries one message at a time.
	DelayMessages Summary
	// Bypass is how often others entered between request and entry.
	Bypass Summary
	// PerClient is how often each client of the workload entered.
	PerClient []int

	Refused int      // commands that were refused
	Untaken *Untaken // nil: all turns of the schedule were taken
	Waiting int      // clients that wait at the end
	Inside  int      // clients that are inside at the end
	Leaders []Leadership
	// GlobalStates are the states that a recorder in the stack has recorded, if it
	// was judged; the first thousand.
	GlobalStates []GlobalState
}

// Result returns the result of a run so far.
func (w *World) Result() *Result {
	m := &w.meter
	if w.reason == 0 {
		m.close(w)
	}
	d := w.config.D()
	return &Result{
		Algorithm: w.cfg.Spec.Name, N: w.config.N, Seed: w.cfg.Seed, D: d,
		Reason: w.reason, Time: w.now, Events: w.events, Records: w.records, Violations: w.violations,
		From: m.from, To: m.to, Entries: m.entries, Messages: w.counts(),
		Wait: m.wait.summary(d), Response: m.response.summary(d), Sync: m.sync.summary(d),
		DelayMessages: m.messages.summary(1), Bypass: m.bypass.summary(1), PerClient: w.perClient(),
		Refused: m.refused, Untaken: w.untaken, Waiting: m.waiting, Inside: m.inside, Leaders: m.leaders, GlobalStates: w.globalStates,
	}
}

// counts returns the messages of the window, in the order of the Spec.
func (w *World) counts() []Count {
	var counts []Count
	for layer, l := range w.cfg.Spec.All() {
		for i, decl := range l.Messages {
			sent := uint64(0)
			if w.meter.open {
				sent = w.meter.atClose[layer][i+1] - w.meter.atOpen[layer][i+1]
			}
			counts = append(counts, Count{Layer: int(layer), Name: decl.Name, Class: decl.Class, Sent: sent})
		}
	}
	return counts
}

func (w *World) perClient() []int {
	var entries []int
	for p := range w.clients {
		if c := &w.clients[p]; c.regular || c.measured > 0 {
			entries = append(entries, int(c.measured))
		}
	}
	return entries
}

// Sent returns the number of messages of a class.
func (r *Result) Sent(class process.Class) uint64 {
	n := uint64(0)
	for _, c := range r.Messages {
		if c.Class == class {
			n += c.Sent
		}
	}
	return n
}

// MessagesPerEntry returns the protocol messages per completed entry.
func (r *Result) MessagesPerEntry() float64 {
	return perEntry(float64(r.Sent(process.Protocol)), r.Entries)
}

func perEntry(v float64, entries int) float64 {
	if entries == 0 {
		return 0
	}
	return v / float64(entries)
}

// Throughput returns the completed entries per D.
func (r *Result) Throughput() float64 {
	if r.To <= r.From {
		return 0
	}
	return float64(r.Entries) * float64(r.D) / float64(r.To-r.From)
}

// Jain returns Jain's index of fairness over the entries of the clients: 1 if all
// entered equally often, 1/n if only one of n did; 0 if none did.
func (r *Result) Jain() float64 {
	sum, squares := 0.0, 0.0
	for _, n := range r.PerClient {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(r.PerClient)) * squares)
}

// Run runs a configuration to its end. Violations are in the result. An error means
// that the configuration is wrong or the trace could not be written.
func Run(cfg Config) (*Result, error) {
	w, err := New(cfg)
	if err != nil {
		return nil, err
	}
	w.run()
	if w.sinkError != nil {
		return w.Result(), fmt.Errorf("sim: writing the trace: %w", w.sinkError)
	}
	return w.Result(), nil
}

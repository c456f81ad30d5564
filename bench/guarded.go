package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/bench/competitor"
	load "github.com/conclave-io/conclave/internal/cli/bench"
)

// guardedReport compares locks that algorithms guard with locks by agreement.
type guardedReport struct {
	Rounds []guardedRound `json:"rounds"`
	Near   nearReport     `json:"near"`
	Pauses []pauses       `json:"pauses"`
	Idle   []idleSpell    `json:"idle"`
}

// guardedRound has the results of consecutive turns on one cluster. Times are medians in ms. Rates are
// in pairs of acquire and release per second.
type guardedRound struct {
	EmptyCall  float64 `json:"empty_call_ms"`
	Agreement  float64 `json:"agreement_ms"`
	AtHome     float64 `json:"token_at_home_ms"`
	Permission float64 `json:"ricart_agrawala_ms"`
	// Fsyncs is the number of writes of all logs during the measurement of ricart-agrawala.
	Fsyncs        int     `json:"ricart_agrawala_fsyncs"`
	AgreementRate float64 `json:"agreement_128_per_s"`
	GuardedRate   float64 `json:"suzuki_kasami_128_per_s"`
	AgreementHand float64 `json:"agreement_64_handoff_ms"`
	GuardedHand   float64 `json:"suzuki_kasami_64_handoff_ms"`
}

// pauses has the pauses of locks when an epoch began while the given number of locks was held.
type pauses struct {
	Held int       `json:"held"`
	MS   []float64 `json:"ms"` // the longest pause on any server, for each change of the epoch
}

// idleSpell is what the servers use while clients send no requests.
type idleSpell struct {
	What     string  `json:"what"`
	CPU      float64 `json:"cpu_percent_of_a_core"` // of all servers together
	Entries  int     `json:"entries"`               // entries added to the log
	Messages int     `json:"messages"`              // messages of algorithms
	Seconds  float64 `json:"seconds"`
}

// The prefixes of names in this measurement.
const (
	underToken      = "token/"
	underPermission = "permission/"
	underCentral    = "central/"
)

// guardedBench is a cluster, with clients that have their homes at each of the servers.
type guardedBench struct {
	*bench
	*load.Homes
	cluster *competitor.Conclave
}

// guarded measures locks that algorithms guard and locks by agreement, in turns on one cluster of
// three servers.
func guarded(ctx context.Context, b *bench) (section, error) {
	l, err := b.startGuarded(ctx)
	if err != nil {
		return section{}, err
	}
	defer l.close()
	var r guardedReport
	for _, part := range []func(context.Context, *guardedReport) error{l.quiet("before an algorithm guards any lock"), l.rounds, l.quiet("while algorithms guard locks"), l.pauses, l.remove, l.quiet("after the last guard was removed"), l.near} {
		if err := part(ctx, &r); err != nil {
			return section{}, errors.Join(err, l.cluster.Died())
		}
	}
	return section{r.text(), r}, nil
}

func (b *bench) startGuarded(ctx context.Context) (*guardedBench, error) {
	c, _, err := b.startConclave(ctx)
	if err != nil {
		return nil, err
	}
	l := &guardedBench{bench: b, cluster: c}
	if l.Homes, err = load.DialHomes(ctx, c.Config(), c.Addresses); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *guardedBench) close() {
	if l.Homes != nil {
		l.Close()
	}
	l.cluster.Stop()
}

// guard sets the algorithm that guards a prefix, and waits until all servers have applied that.
func (l *guardedBench) guard(ctx context.Context, prefix, algorithm string) error {
	return l.cluster.Await(ctx, time.Minute, "no algorithm may guard locks", func(ctx context.Context) (bool, error) {
		// A new cluster may need a few seconds to reach the required level.
		err := l.Guard(ctx, prefix, admin.Use{Algorithm: algorithm})
		return err == nil, err
	})
}

func (l *guardedBench) remove(ctx context.Context, _ *guardedReport) error {
	v, err := admin.New(l.Control).View(ctx)
	for _, g := range v.Guards {
		err = errors.Join(err, admin.New(l.Control).RemoveGuard(ctx, g.Prefix))
	}
	return errors.Join(err, pause(ctx, 5*time.Second)) // until the servers have closed their seats
}

// turn runs a workload under a prefix. The clients are distributed over the homes.
func (l *guardedBench) turn(ctx context.Context, prefix, workload string, clients int, homes []*conclave.Client) (load.Figures, error) {
	var lockers []load.Locker
	for i := range clients {
		client := homes[i%len(homes)]
		lockers = append(lockers, func(ctx context.Context, name string) (load.Release, error) {
			held, err := client.Lock(ctx, prefix+name)
			if err != nil {
				return nil, err
			}
			return held.Unlock, nil
		})
	}
	return load.Load{Workload: workload, Clients: lockers, Duration: time.Duration(l.seconds) * time.Second}.Run(ctx)
}

func (l *guardedBench) rounds(ctx context.Context, r *guardedReport) error {
	for prefix, algorithm := range map[string]string{underToken: "suzuki-kasami", underPermission: "ricart-agrawala", underCentral: "central"} {
		if err := l.guard(ctx, prefix, algorithm); err != nil {
			return err
		}
	}
	for range l.bench.rounds {
		one, err := l.round(ctx)
		if err != nil {
			return err
		}
		r.Rounds = append(r.Rounds, one)
		fmt.Fprintf(os.Stderr, "  round %d: %+v\n", len(r.Rounds), one)
	}
	return nil
}

func (l *guardedBench) round(ctx context.Context) (r guardedRound, err error) {
	if r.EmptyCall, err = load.RoundTrip(ctx, l.cluster.Config(), time.Second); err != nil {
		return r, err
	}
	alone := l.Clients[:1]
	for _, t := range []struct {
		prefix string
		p50    *float64
	}{{"", &r.Agreement}, {underToken, &r.AtHome}, {underPermission, &r.Permission}} {
		// The first lock under a prefix may open a session, which writes a log entry.
		if _, err := pairs(ctx, alone[0], t.prefix+"first", time.Millisecond); err != nil {
			return r, err
		}
		before, err := sum(ctx, l.cluster.Addresses, "conclave_fsyncs_total")
		if err != nil {
			return r, err
		}
		f, err := l.turn(ctx, t.prefix, load.Uncontended, 1, alone)
		if err != nil {
			return r, err
		}
		after, err := sum(ctx, l.cluster.Addresses, "conclave_fsyncs_total")
		if err != nil {
			return r, err
		}
		*t.p50, r.Fsyncs = *f.Acquire(50), after-before
	}
	for prefix, into := range map[string][2]*float64{"": {&r.AgreementRate, &r.AgreementHand}, underToken: {&r.GuardedRate, &r.GuardedHand}} {
		f, err := l.turn(ctx, prefix, load.Uncontended, 128, l.Clients)
		if err != nil {
			return r, err
		}
		*into[0] = f.Rate()
		if f, err = l.turn(ctx, prefix, load.Contended, 64, l.Clients); err != nil {
			return r, err
		}
		*into[1] = *f.Handoff(50)
	}
	return r, nil
}

// quiet measures what the servers use while clients send no requests.
func (l *guardedBench) quiet(what string) func(context.Context, *guardedReport) error {
	return func(ctx context.Context, r *guardedReport) error {
		if err := pause(ctx, 12*time.Second); err != nil { // until the servers have closed idle sessions at homes
			return err
		}
		look := func() (cpu float64, entries, messages int, err error) {
			if cpu, err = usedByAll(l.cluster.PIDs()); err != nil {
				return 0, 0, 0, err
			}
			if entries, err = metric(ctx, l.cluster.Addresses[0], "conclave_commit_index"); err != nil {
				return 0, 0, 0, err
			}
			messages, err = sum(ctx, l.cluster.Addresses, "conclave_live_messages_total")
			return cpu, entries, messages, err
		}
		began := time.Now()
		cpu, entries, messages, err := look()
		if err != nil {
			return err
		}
		if err := pause(ctx, time.Duration(l.span)*time.Second); err != nil {
			return err
		}
		cpuThen, entriesThen, messagesThen, err := look()
		if err != nil {
			return err
		}
		took := time.Since(began).Seconds()
		r.Idle = append(r.Idle, idleSpell{what, 100 * (cpuThen - cpu) / took, entriesThen - entries, messagesThen - messages, took})
		fmt.Fprintf(os.Stderr, "  idle %+v\n", r.Idle[len(r.Idle)-1])
		return nil
	}
}

// pauses measures how long locks pause when an epoch begins while many locks are held.
func (l *guardedBench) pauses(ctx context.Context, r *guardedReport) error {
	var held []*conclave.Lock
	for _, n := range []int{1000, l.locks} {
		more, err := l.hold(ctx, underCentral, len(held), n)
		if err != nil {
			return err
		}
		held = append(held, more...)
		p := pauses{Held: len(held)}
		for range l.count {
			ms, err := l.pauseOnce(ctx)
			if err != nil {
				return err
			}
			p.MS = append(p.MS, ms)
		}
		r.Pauses = append(r.Pauses, p)
		fmt.Fprintf(os.Stderr, "  %d held: pauses of %.1f ms\n", p.Held, p.MS)
	}
	return l.eachHeld(held, func(h *conclave.Lock) error { return h.Unlock(ctx) })
}

// pauseOnce starts an epoch by setting a guard for unused names. It returns the longest pause of
// the servers, in ms.
func (l *guardedBench) pauseOnce(ctx context.Context) (ms float64, err error) {
	if err := l.guard(ctx, "turn/", "central"); err != nil {
		return 0, err
	}
	v, err := admin.New(l.Control).Homes(ctx)
	if err != nil {
		return 0, err
	}
	for _, m := range v.Members {
		ms = max(ms, m.Home.Paused.Seconds()*1e3)
	}
	// Setting the guard again before it is gone would cancel the change.
	return ms, l.Guard(ctx, "turn/", admin.Use{})
}

// hold acquires the names with numbers in a range, with clients at all homes.
func (l *guardedBench) hold(ctx context.Context, prefix string, from, to int) ([]*conclave.Lock, error) {
	held := make([]*conclave.Lock, to-from)
	var group errgroup.Group
	for worker := range 3 * 64 {
		group.Go(func() (err error) {
			for i := from + worker; i < to && err == nil; i += 3 * 64 {
				held[i-from], err = l.Clients[worker%len(l.Clients)].Lock(ctx, prefix+lockName(i))
			}
			return err
		})
	}
	return held, group.Wait()
}

// eachHeld calls do for each lock that is still held, many at a time.
func (l *guardedBench) eachHeld(held []*conclave.Lock, do func(*conclave.Lock) error) error {
	var group errgroup.Group
	group.SetLimit(256)
	for _, h := range held {
		group.Go(func() error { return do(h) })
	}
	return group.Wait()
}

// of returns one figure of all rounds.
func (r *guardedReport) of(figure func(*guardedRound) float64) *spread {
	var all []float64
	for i := range r.Rounds {
		all = append(all, figure(&r.Rounds[i]))
	}
	return spreadOf(all)
}

// text formats the section. It computes ratios within a round.
func (r *guardedReport) text() string {
	row := func(what, wanted string, figures ...*spread) []string {
		cells := []string{what}
		for _, f := range figures {
			cells = append(cells, f.String())
		}
		return append(cells, wanted)
	}
	fsyncs := 0
	for _, one := range r.Rounds {
		fsyncs += one.Fsyncs
	}
	var b strings.Builder
	b.WriteString(table([]string{"", "algorithm", "beside it", "ratio", "wanted"}, [][]string{
		row("near re-entry, pairs/s; agreement's", "at least 1,000,000", r.Near.near(), r.Near.agreement(), r.Near.ratio()),
		row("acquire with the token at the home, p50 in ms; an empty call", "at most 1.5", r.of(func(o *guardedRound) float64 { return o.AtHome }), r.of(func(o *guardedRound) float64 { return o.EmptyCall }), r.of(func(o *guardedRound) float64 { return o.AtHome / o.EmptyCall })),
		row("acquire under ricart-agrawala, p50 in ms; an empty call", "at most 3", r.of(func(o *guardedRound) float64 { return o.Permission }), r.of(func(o *guardedRound) float64 { return o.EmptyCall }), r.of(func(o *guardedRound) float64 { return o.Permission / o.EmptyCall })),
		row("the same; acquire under agreement", "-", r.of(func(o *guardedRound) float64 { return o.Permission }), r.of(func(o *guardedRound) float64 { return o.Agreement }), r.of(func(o *guardedRound) float64 { return o.Permission / o.Agreement })),
		row("128 clients at three homes, own names, pairs/s; agreement", "at least 2", r.of(func(o *guardedRound) float64 { return o.GuardedRate }), r.of(func(o *guardedRound) float64 { return o.AgreementRate }), r.of(func(o *guardedRound) float64 { return o.GuardedRate / o.AgreementRate })),
		row("64 clients at three homes, one name, hand-off p50 in ms; agreement", "at most 0.5", r.of(func(o *guardedRound) float64 { return o.GuardedHand }), r.of(func(o *guardedRound) float64 { return o.AgreementHand }), r.of(func(o *guardedRound) float64 { return o.GuardedHand / o.AgreementHand })),
	}))
	fmt.Fprintf(&b, "\nWhile ricart-agrawala was measured the logs were written %d times.\n\n", fsyncs)
	fmt.Fprintf(&b, "A near pair allocated %.2f times and %.0f bytes, and the servers sent %d messages of algorithms during %d pairs.\n\n", r.Near.Allocations, r.Near.Bytes, r.Near.Messages, r.Near.Pairs)
	var rows [][]string
	for _, p := range r.Pauses {
		ms := slices.Sorted(slices.Values(p.MS))
		rows = append(rows, []string{fmt.Sprint(p.Held), fmt.Sprint(len(ms)), digits(ms[len(ms)/2]), digits(ms[len(ms)-1])})
	}
	b.WriteString(table([]string{"pause when an epoch begins: locks held", "epochs", "median, ms", "longest, ms"}, rows))
	rows = nil
	for _, i := range r.Idle {
		rows = append(rows, []string{i.What, digits(i.CPU), fmt.Sprintf("%.1f", float64(i.Entries)/i.Seconds), fmt.Sprint(i.Messages)})
	}
	b.WriteString("\n" + table([]string{"three servers that nobody asks for anything", "% of a core", "log entries/s", "messages of algorithms"}, rows))
	return b.String()
}

// namesReport is the memory that servers use for names that are no longer held.
type namesReport struct {
	Algorithm string  `json:"algorithm"`
	Names     int     `json:"names"`
	Before    int64   `json:"before_bytes"` // resident memory of all servers
	After     int64   `json:"after_bytes"`
	Each      float64 `json:"mb_a_member"`
}

// idleNames measures the memory for names that were held once. The names use two
// prefixes, because one prefix cannot have that many names.
func idleNames(ctx context.Context, b *bench) (section, error) {
	l, err := b.startGuarded(ctx)
	if err != nil {
		return section{}, err
	}
	defer l.close()
	r := namesReport{Algorithm: "suzuki-kasami"}
	prefixes := []string{"idle1/", "idle2/"}
	for _, prefix := range prefixes {
		if err := l.guard(ctx, prefix, r.Algorithm); err != nil {
			return section{}, err
		}
	}
	rest := time.Duration(l.rest) * time.Second
	if err := pause(ctx, rest); err != nil {
		return section{}, err
	}
	if r.Before, err = residentBytes(l.cluster.PIDs()); err != nil {
		return section{}, err
	}
	for _, prefix := range prefixes {
		held, err := l.hold(ctx, prefix, 0, l.locks/len(prefixes))
		if err != nil {
			return section{}, err
		}
		if err := l.eachHeld(held, func(h *conclave.Lock) error { return h.Unlock(ctx) }); err != nil {
			return section{}, err
		}
		r.Names += len(held)
	}
	if err := pause(ctx, rest); err != nil {
		return section{}, err
	}
	if r.After, err = residentBytes(l.cluster.PIDs()); err != nil {
		return section{}, err
	}
	r.Each = float64(r.After-r.Before) / 1e6 / float64(len(l.cluster.Addresses))
	return section{fmt.Sprintf("%d names under %s that were used once take %s MB of RAM at each server (wanted: at most 50 for 100,000).\n", r.Names, r.Algorithm, digits(r.Each)), r}, nil
}

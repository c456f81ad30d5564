package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/conclave-io/conclave/bench/competitor"
	load "github.com/conclave-io/conclave/internal/cli/bench"
)

// loadCase is one load for the comparison of services.
type loadCase struct {
	Workload    string `json:"workload"`
	Clients     int    `json:"clients"`
	Connections int    `json:"connections"`
}

func (k loadCase) String() string {
	return fmt.Sprintf("%s, %s over %s", k.Workload, plural(k.Clients, "client"), plural(k.Connections, "connection"))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

var cases = []loadCase{
	{load.Uncontended, 1, 1},
	{load.Uncontended, 128, 1},
	{load.Uncontended, 128, 16},
	{load.Contended, 64, 1},
}

// sample is the result of one turn of one service.
type sample struct {
	loadCase
	Service   string   `json:"service"`
	Round     int      `json:"round"`
	Rate      float64  `json:"ops_per_s"`
	P50       *float64 `json:"acquire_ms_p50"`
	P99       *float64 `json:"acquire_ms_p99"`
	Handoff   *float64 `json:"handoff_ms_p50"`
	Fairness  *float64 `json:"max_min_entries"`
	Failed    int64    `json:"failed"`
	Fdatasync float64  `json:"fdatasync_ms_p50"` // of this round
}

// services compares services. All of them run during the whole measurement and take turns under
// each load, so that other load on the machine affects all of them equally.
func services(ctx context.Context, b *bench) (section, error) {
	running, absent, err := b.startServices(ctx)
	defer func() {
		for _, s := range running {
			_ = s.Stop()
		}
	}()
	if err != nil {
		return section{}, err
	}
	if err := b.warm(ctx, running); err != nil {
		return section{}, err
	}
	var samples []sample
	for round := range b.rounds {
		fdatasync, err := load.Fdatasync(ctx, b.binaries.Conclave, b.dir, time.Second)
		if err != nil {
			return section{}, err
		}
		for _, k := range cases {
			for _, name := range b.services {
				if running[name] == nil {
					continue
				}
				s, err := b.turn(ctx, running[name], k)
				if err != nil {
					return section{}, fmt.Errorf("%s, %v: %w", name, k, err)
				}
				s.Service, s.Round, s.Fdatasync = name, round+1, fdatasync
				samples = append(samples, s)
				fmt.Fprintf(os.Stderr, "  round %d, %v: %s %.0f/s\n", round+1, k, name, s.Rate)
			}
		}
	}
	return section{tables(samples, b.services, absent), samples}, nil
}

// startServices starts the installed services, and returns the names of the missing ones.
func (b *bench) startServices(ctx context.Context) (map[string]competitor.Service, []string, error) {
	running := make(map[string]competitor.Service)
	var absent []string
	for _, name := range b.services {
		s, err := b.start(ctx, name)
		switch {
		case errors.Is(err, competitor.ErrAbsent):
			absent = append(absent, err.Error())
		case err != nil:
			return running, absent, err
		default:
			running[name] = s
		}
	}
	if len(running) == 0 {
		return running, absent, errors.New("none of the services is installed")
	}
	return running, absent, nil
}

// start starts a service, and says so if it is not installed.
func (b *bench) start(ctx context.Context, name string) (competitor.Service, error) {
	s, err := competitor.Start(ctx, name, b.binaries, b.dir)
	if errors.Is(err, competitor.ErrAbsent) {
		fmt.Fprintf(os.Stderr, "  %v: left out\n", err)
	}
	return s, err
}

// warm gives each service a turn without a result, so that its code is compiled if it is compiled
// at run time.
func (b *bench) warm(ctx context.Context, running map[string]competitor.Service) error {
	for _, name := range b.services {
		if s := running[name]; s != nil {
			if _, err := b.turn(ctx, s, loadCase{load.Uncontended, 128, 16}); err != nil {
				return fmt.Errorf("warming up %s: %w", name, err)
			}
		}
	}
	return nil
}

func (b *bench) turn(ctx context.Context, s competitor.Service, k loadCase) (sample, error) {
	lockers, closeAll, err := s.Lockers(ctx, k.Workload, k.Clients, k.Connections)
	if err != nil {
		return sample{}, err
	}
	defer closeAll()
	f, err := load.Load{Workload: k.Workload, Clients: lockers, Duration: time.Duration(b.seconds) * time.Second}.Run(ctx)
	if err != nil && (ctx.Err() != nil || f.Done > 0) {
		return sample{}, err
	}
	return sample{ // a service without completed operations has the rate 0
		loadCase: k, Rate: f.Rate(), P50: f.Acquire(50), P99: f.Acquire(99), Handoff: f.Handoff(50),
		Fairness: f.MaxMin(), Failed: f.Failed,
	}, s.Died()
}

// tables returns a table for each load. It computes ratios within a round. So the spread of a ratio
// does not include changes in the speed of the machine.
func tables(samples []sample, names, absent []string) string {
	var b strings.Builder
	for _, k := range cases {
		var rows [][]string
		for _, name := range names {
			of := pick(samples, k, name)
			if len(of) > 0 {
				rows = append(rows, row(name, of, pick(samples, k, "conclave")))
			}
		}
		fmt.Fprintf(&b, "**%s%s**\n\n", strings.ToUpper(k.Workload[:1]), k.String()[1:])
		b.WriteString(table([]string{"", "operations/s", "Conclave's over it", "acquire p50, ms", "p99, ms", "hand-off p50, ms", "most/least", "failed"}, rows))
		b.WriteByte('\n')
	}
	rounds := make(map[int]float64)
	for _, s := range samples {
		rounds[s.Round] = s.Fdatasync
	}
	var fdatasync []float64
	for _, v := range rounds {
		fdatasync = append(fdatasync, v)
	}
	fmt.Fprintf(&b, "An fdatasync of 4 KiB by three processes at once took %v ms. Median of %s (least to most).\n",
		spreadOf(fdatasync), plural(len(rounds), "round"))
	for _, line := range absent {
		fmt.Fprintf(&b, "Left out: %s.\n", line)
	}
	return b.String()
}

func pick(samples []sample, k loadCase, service string) (of []sample) {
	for _, s := range samples {
		if s.loadCase == k && s.Service == service {
			of = append(of, s)
		}
	}
	return of
}

func row(name string, of, conclave []sample) []string {
	var rates, ratios, p50, p99, handoff, fairness []float64
	var failed int64
	for i, s := range of {
		rates = append(rates, s.Rate)
		if name != "conclave" && i < len(conclave) && s.Rate > 0 {
			ratios = append(ratios, conclave[i].Rate/s.Rate)
		}
		p50, p99, handoff, fairness = grow(p50, s.P50), grow(p99, s.P99), grow(handoff, s.Handoff), grow(fairness, s.Fairness)
		failed += s.Failed
	}
	return []string{
		name, spreadOf(rates).String(), spreadOf(ratios).String(), spreadOf(p50).String(), middle(p99), middle(handoff), middle(fairness), fmt.Sprint(failed),
	}
}

func grow(values []float64, v *float64) []float64 {
	if v == nil {
		return values
	}
	return append(values, *v)
}

func middle(values []float64) string {
	if s := spreadOf(values); s != nil {
		return digits(s.Median)
	}
	return "-"
}

// Command bench measures Conclave and other services, under faults and with many sessions. It also
// measures Conclave's model checker and Spin. It writes the results into docs/performance.md.
//
// It is a separate module, so that users of Conclave do not need the dependencies for other
// services. It runs on Linux and sends load only to 127.0.0.1. It ends only processes that it
// started, and removes its files. Each measurement is a command:
//
//	go -C bench run . services
//
// "make bench" runs all of them, one after another.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/conclave-io/conclave/bench/competitor"
)

// A measurement is a command whose result becomes a section of the page.
type measurement struct {
	name, what string
	run        func(context.Context, *bench) (section, error)
}

var measurements = []measurement{
	{"services", "Conclave, etcd, ZooKeeper and Redis under the same loads, in turn", services},
	{"failover", "from the death of a leader, or its stopping, to the next entry", failover},
	{"holder", "from the death of a holder to the next entry", onCluster(holderCrash)},
	{"fairness", "what a client notices of neighbours that flood", fairness},
	{"rules", "what rules of access cost an acquire", onCluster(rules)},
	{"readers", "what clients notice of scans, backups and snapshots of a large state", onCluster(readers)},
	{"idle", "what sessions cost that only renew", onCluster(idle)},
	{"expiry", "what others notice when many sessions end at once", onCluster(expiry)},
	{"memory", "what a held lock costs in memory", memory},
	{"profile", "where the leader's processor time goes under load", onCluster(profile)},
	{"live", "locks that algorithms guard between the servers, beside agreement", guarded},
	{"names", "what names cost in memory that were locked once, under an algorithm", idleNames},
	{"checker", "the model checker beside Spin on the same model", checker},
}

// bench has the settings of all measurements.
type bench struct {
	rounds, seconds, count, sessions, connections, locks, rest int
	held, holders, span, entries                               int
	services                                                   []string

	dir      string // directory of this run, removed at its end
	binaries competitor.Binaries
	flags    string // flags that differ from their defaults
}

type options struct {
	bench
	parent, page, results, services, base, pattern string
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == holdCommand {
		hold(os.Args[2:])
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func usage() string {
	var b strings.Builder
	b.WriteString("measurement: missing; must be one of these, and then flags (-h lists them):\n")
	for _, m := range measurements {
		fmt.Fprintf(&b, "  %-10s %s\n", m.name, m.what)
	}
	b.WriteString("  all        all of these\n  compare    this tree beside that of another commit (-base)")
	return b.String()
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage())
	}
	name := args[0]
	o := options{}
	flags := flag.NewFlagSet("bench "+name, flag.ContinueOnError)
	rounds := 5
	if name == "compare" {
		rounds = 6 // with fewer rounds, benchstat computes no interval
	}
	flags.IntVar(&o.rounds, "rounds", rounds, "how often each service, or each of two commits, gets its turn")
	flags.IntVar(&o.seconds, "seconds", 3, "how long one turn takes, or a profile")
	flags.IntVar(&o.count, "count", 11, "how often a leader or a holder dies")
	flags.IntVar(&o.sessions, "sessions", 10000, "how many sessions are idle, or expire")
	flags.IntVar(&o.connections, "connections", 100, "how many connections the sessions share")
	flags.IntVar(&o.locks, "locks", 100000, "how many locks are held for the memory that they take")
	flags.IntVar(&o.rest, "rest", 60, "how many seconds servers rest before their memory is read")
	flags.IntVar(&o.held, "held", 1000000, "of readers: how many locks are held")
	flags.IntVar(&o.holders, "holders", 100000, "of readers: how many sessions hold them")
	flags.IntVar(&o.span, "span", 10, "of readers: how many seconds are measured at a time")
	flags.IntVar(&o.entries, "entries", 4, "of checker: how often each process enters")
	flags.StringVar(&o.services, "services", strings.Join(competitor.Kinds, ","), "which services take part")
	flags.StringVar(&o.parent, "dir", "", "where to keep data meanwhile (default: the directory for temporary files)")
	flags.StringVar(&o.page, "page", "", "write the section into this page, between its markers")
	flags.StringVar(&o.results, "results", "", "keep the figures as JSON in this directory")
	flags.StringVar(&o.base, "base", "", "of compare: the commit to compare with")
	flags.StringVar(&o.pattern, "pattern", ".", "of compare: which Go benchmarks, as of go test -bench")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if err := o.validate(flags); err != nil {
		return err
	}
	var err error
	if o.dir, err = os.MkdirTemp(o.parent, "conclave-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	flags.Visit(func(f *flag.Flag) {
		if f.Name != "page" && f.Name != "results" && f.Name != "dir" { // these flags do not affect the results
			o.flags += fmt.Sprintf(" -%s %v", f.Name, f.Value)
		}
	})
	if name == "compare" {
		return compare(ctx, &o)
	}
	return o.measure(ctx, name)
}

func (o *options) validate(flags *flag.FlagSet) error {
	if flags.NArg() > 0 {
		return fmt.Errorf("%q: unexpected argument", flags.Arg(0))
	}
	for name, v := range map[string]struct{ value, most int }{
		"rounds": {o.rounds, 100}, "seconds": {o.seconds, 60}, "count": {o.count, 101},
		"held": {o.held, 4000000}, "holders": {o.holders, o.held}, "span": {o.span, 60}, "entries": {o.entries, 4},
		"sessions": {o.sessions, 10000}, "connections": {o.connections, o.sessions}, "locks": {o.locks, 1000000}, "rest": {o.rest, 600},
	} {
		if v.value < 1 || v.value > v.most {
			return fmt.Errorf("-%s: %d: must be between 1 and %d", name, v.value, v.most)
		}
	}
	o.bench.services = strings.Split(o.services, ",")
	for _, s := range o.bench.services {
		if !slices.Contains(competitor.Kinds, s) {
			return fmt.Errorf("-services: %q: must be among %s", s, strings.Join(competitor.Kinds, ", "))
		}
	}
	return nil
}

func (o *options) measure(ctx context.Context, name string) error {
	chosen := slices.Clone(measurements)
	if name != "all" {
		chosen = slices.DeleteFunc(chosen, func(m measurement) bool { return m.name != name })
	}
	if len(chosen) == 0 {
		return fmt.Errorf("%q: unknown measurement; %s", name, usage())
	}
	if err := o.build(ctx); err != nil {
		return err
	}
	for _, m := range chosen {
		fmt.Fprintf(os.Stderr, "%s: %s\n", m.name, m.what)
		head := about("go -C bench run . " + m.name + o.flags)
		s, err := m.run(ctx, &o.bench)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if err := s.keep(m.name, head, o.page, o.results); err != nil {
			return err
		}
	}
	return nil
}

// build builds the servers from the sources that the go.mod files specify.
func (o *options) build(ctx context.Context) error {
	o.binaries = competitor.Binaries{Conclave: filepath.Join(o.dir, "conclave"), Etcd: filepath.Join(o.dir, "etcd")}
	if err := command(ctx, "..", "go", "build", "-buildvcs=false", "-o", o.binaries.Conclave, "./cmd/conclave"); err != nil {
		return err
	}
	if !slices.Contains(o.bench.services, "etcd") {
		return nil
	}
	return command(ctx, ".", "go", "build", "-buildvcs=false", "-o", o.binaries.Etcd, "go.etcd.io/etcd/server/v3")
}

// command runs a command in dir and prints its output.
func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/bench/competitor"
	"github.com/conclave-io/conclave/bench/holders"
)

// heldTTL is long enough to fill the servers. Each session is renewed after a quarter of it.
const heldTTL = 10 * time.Minute

// What runs during a spell, in addition to the load.
const (
	besideNothing = "nothing"
	besideReaders = "readers"
	// besidePrograms means programs that only compute, one per server. They run until they have
	// used as much processor time as the readers need without other load.
	besidePrograms = "programs"
)

// spell is the result of one period of measurement.
type spell struct {
	Beside string `json:"beside"`
	Round  int    `json:"round"` // 0: all rounds together
	// CPU is the processor time, in seconds, of the servers, the clients, and the readers or
	// programs.
	CPU float64 `json:"cpu_s"`
	// Acquires and Renewals are the numbers of answered requests.
	Acquires int64     `json:"acquires"`
	Renewals int64     `json:"renewals"`
	Acquire  quantiles `json:"acquire_ms"`
	Renew    quantiles `json:"renew_ms"`
	Seconds  float64   `json:"seconds"`
	// Scanned is the number of locks that were read, and Backup the size of the backup in bytes.
	// Scan and BackedUp are the durations of both, in seconds. Snapshots is the number of snapshots
	// that began.
	Scanned   int     `json:"scanned"`
	Scan      float64 `json:"scan_s"`
	Backup    int     `json:"backup_bytes"`
	BackedUp  float64 `json:"backup_s"`
	Snapshots int     `json:"snapshots"`
	// Term is the term at the end.
	Term int `json:"term"`

	latencies latencies
}

type quantiles struct {
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
}

// quantify computes the counts and the quantiles from the latencies.
func (s *spell) quantify() {
	in := s.latencies
	at := func(q float64) (acquire, renew float64) {
		return float64(in.acquires.ValueAtQuantile(q)) / 1e6, float64(in.renewals.ValueAtQuantile(q)) / 1e6
	}
	s.Acquires, s.Renewals = in.acquires.TotalCount(), in.renewals.TotalCount()
	s.Acquire.P50, s.Renew.P50 = at(50)
	s.Acquire.P99, s.Renew.P99 = at(99)
	s.Acquire.P999, s.Renew.P999 = at(99.9)
	s.Acquire.Max, s.Renew.Max = at(100)
}

// readersReport is the result of the measurement, with its parameters.
type readersReport struct {
	Rounds   int `json:"rounds"`
	Locks    int `json:"locks"`
	Sessions int `json:"sessions"`
	// Highest is the highest rate of acquires and releases. Rate is the rate during the
	// measurement, and Renewals the rate of renewals. All are per second.
	Highest  float64 `json:"highest_per_s"`
	Rate     float64 `json:"rate_per_s"`
	Renewals float64 `json:"renewals_per_s"`
	Resident int64   `json:"resident_bytes"` // of all servers, at the end
	Terms    [2]int  `json:"terms"`          // before and after
	// Alone is the processor time, in seconds, that the readers need without other load. It cannot
	// be measured under load: when processors are scarce, the servers process requests in larger
	// batches and need less time for each request.
	Alone  float64 `json:"readers_alone_cpu_s"`
	Spells []spell `json:"spells"`
}

// readers measures how a scan, a backup and a snapshot of a large state affect clients, at half of
// the highest load. Three kinds of spells take turns: without other work, with readers, and with
// programs that use the same processor time.
func readers(ctx context.Context, b *bench, c *competitor.Conclave, _ int) (section, error) {
	find := func(ctx context.Context) (string, error) {
		leader, err := competitor.Settle(ctx, c)
		if err != nil {
			return "", err
		}
		return c.Addresses[leader-1], nil
	}
	group := holders.New(b.holders, b.held/b.holders, heldTTL, find)
	began := time.Now()
	if err := group.Fill(ctx); err != nil {
		return section{}, fmt.Errorf("filling the servers: %w", err)
	}
	fmt.Fprintf(os.Stderr, "  %d locks are held after %.0f s\n", b.held, time.Since(began).Seconds())
	address, err := find(ctx) // the leader may have changed while the servers were filled
	if err != nil {
		return section{}, err
	}
	load, err := startPaced(ctx, address, group.Sessions)
	if err != nil {
		return section{}, err
	}
	m := readersReport{Rounds: b.rounds, Locks: b.held, Sessions: b.holders, Renewals: float64(b.holders) / (heldTTL / 4).Seconds()}
	err = b.measureReaders(ctx, c, address, load, &m)
	if err := errors.Join(load.close(), err); err != nil {
		return section{}, err
	}
	if m.Resident, err = residentBytes(c.PIDs()); err != nil {
		return section{}, err
	}
	return section{m.table(), m}, nil
}

func (b *bench) measureReaders(ctx context.Context, c *competitor.Conclave, leader string, load *paced, m *readersReport) error {
	r := &reading{addresses: c.Addresses, leader: leader, pids: append(c.PIDs(), os.Getpid())}
	alone, err := b.spell(ctx, r, load, besideReaders, cost{})
	if err != nil {
		return err
	}
	m.Alone = alone.CPU
	fmt.Fprintf(os.Stderr, "  without other load, %v\n", &alone)
	if m.Highest, err = load.highest(ctx, time.Duration(b.span)*time.Second); err != nil {
		return err
	}
	m.Rate = m.Highest / 2
	loading, stop := context.WithCancel(ctx)
	var pacing errgroup.Group
	pacing.Go(func() error { load.run(loading, m.Rate, m.Renewals); return nil })
	defer pacing.Wait()
	defer stop()
	if m.Terms[0], err = metric(ctx, leader, "conclave_term"); err != nil {
		return err
	}
	var sums []spell
	for _, beside := range []string{besideNothing, besideReaders, besidePrograms} {
		sums = append(sums, spell{Beside: beside, latencies: newLatencies()})
	}
	for round := range b.rounds {
		readers := cost{cpu: m.Alone}
		for i := range sums {
			s, err := b.spell(ctx, r, load, sums[i].Beside, readers)
			if err != nil {
				return err
			}
			s.Round = round + 1
			sums[i].add(s)
			m.Spells = append(m.Spells, s)
			if s.Beside == besideReaders {
				readers.seconds = s.Seconds
			}
			fmt.Fprintf(os.Stderr, "  round %d, %v\n", s.Round, &s)
		}
	}
	for i := range sums {
		sums[i].quantify()
	}
	m.Spells = append(m.Spells, sums...)
	m.Terms[1] = sums[len(sums)-1].Term
	return nil
}

// add adds the counts of another spell.
func (s *spell) add(o spell) {
	s.latencies.merge(o.latencies)
	s.CPU += o.CPU
	s.Seconds, s.Scanned, s.Scan, s.BackedUp = s.Seconds+o.Seconds, s.Scanned+o.Scanned, s.Scan+o.Scan, s.BackedUp+o.BackedUp
	s.Backup, s.Snapshots, s.Term = s.Backup+o.Backup, s.Snapshots+o.Snapshots, o.Term
}

func (s *spell) String() string {
	return fmt.Sprintf("beside %s: %.1f s, %.1f s of processors, acquire %.1f, renew %.1f ms; scan %.1f s, backup %.1f s, %s, term %d",
		s.Beside, s.Seconds, s.CPU, s.Acquire, s.Renew, s.Scan, s.BackedUp, plural(s.Snapshots, "snapshot"), s.Term)
}

// cost is the cost of the readers: processor time and duration, both in seconds.
type cost struct{ cpu, seconds float64 }

// spell measures one period. With readers, it lasts until they have finished. With programs, it
// lasts as long as the readers took. Otherwise it has a fixed length. Before a spell without
// readers the servers take a snapshot, so that the next one is not due during the spell.
func (b *bench) spell(ctx context.Context, r *reading, load *paced, beside string, readers cost) (spell, error) {
	if beside != besideReaders {
		if err := r.snapshot(ctx); err != nil {
			return spell{}, err
		}
		if err := pause(ctx, 2*time.Second); err != nil { // until the snapshots are on disk
			return spell{}, err
		}
	}
	before, err := sum(ctx, r.addresses, snapshotsTaken)
	if err != nil {
		return spell{}, err
	}
	idle, err := usedByAll(r.pids)
	if err != nil {
		return spell{}, err
	}
	s := spell{Beside: beside}
	load.take()
	began := time.Now()
	switch beside {
	case besideReaders:
		err = r.read(ctx, &s)
	case besidePrograms:
		s.CPU, err = compute(ctx, len(r.addresses), readers)
	default:
		err = pause(ctx, time.Duration(b.span)*time.Second)
	}
	if err != nil {
		return spell{}, err
	}
	s.Seconds, s.latencies = time.Since(began).Seconds(), load.take()
	s.quantify()
	cpu, err := usedByAll(r.pids)
	if err != nil {
		return spell{}, err
	}
	s.CPU += cpu - idle
	after, err := sum(ctx, r.addresses, snapshotsTaken)
	if err != nil {
		return spell{}, err
	}
	s.Snapshots = after - before
	s.Term, err = metric(ctx, r.leader, "conclave_term")
	return s, err
}

// compute runs programs that only compute, at the same time, until they have used as much processor
// time as the readers. It then waits until the duration of the readers is over, and returns the
// processor time that was used.
func compute(ctx context.Context, programs int, readers cost) (total float64, err error) {
	ctx, stop := context.WithTimeout(ctx, time.Duration(readers.seconds*float64(time.Second)))
	defer stop()
	var run errgroup.Group
	usage := make([]float64, programs)
	for i := range usage {
		run.Go(func() error {
			loop := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
			if err := loop.Start(); err != nil {
				return err
			}
			for usage[i] < readers.cpu/float64(programs) && pause(ctx, clockTick) == nil {
				u, err := usedBy(loop.Process.Pid)
				if err != nil {
					return errors.Join(err, loop.Process.Kill())
				}
				usage[i] = u.CPU.Seconds()
			}
			_ = loop.Process.Kill() // ctx kills it in any case
			_ = loop.Wait()
			<-ctx.Done()
			return nil
		})
	}
	err = run.Wait()
	for _, u := range usage {
		total += u
	}
	return total, err
}

// usedByAll returns the total processor time of some processes, in seconds.
func usedByAll(pids []int) (seconds float64, err error) {
	all, err := usedByEach(pids)
	for _, u := range all {
		seconds += u.CPU.Seconds()
	}
	return seconds, err
}

// reading has the addresses and processes that the readers need.
type reading struct {
	addresses []string
	leader    string
	pids      []int // of the servers, and of this program, which runs the clients
}

// read scans all locks, makes a backup, and makes the servers take a snapshot. All three run at the
// same time, once each.
func (r *reading) read(ctx context.Context, s *spell) error {
	conn, err := holders.Connect(r.leader)
	if err != nil {
		return err
	}
	defer conn.Close()
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	group.Go(func() error { return r.snapshot(ctx) })
	group.Go(func() error {
		err := holders.Scan(ctx, conn, "", func(all []*api.Resource) error {
			s.Scanned += len(all)
			return nil
		})
		s.Scan = time.Since(began).Seconds()
		return err
	})
	group.Go(func() (err error) {
		s.Backup, err = holders.Backup(ctx, conn)
		s.BackedUp = time.Since(began).Seconds()
		return err
	})
	return group.Wait()
}

// snapshot makes every server take a snapshot. It stores values of 64 KiB until the log is long
// enough.
func (r *reading) snapshot(ctx context.Context) error {
	stream, err := holders.Attach(ctx, r.leader)
	if err != nil {
		return err
	}
	defer stream.Close()
	before, err := sum(ctx, r.addresses, snapshotsTaken)
	if err != nil {
		return err
	}
	s := holders.New(1, 0, time.Minute, nil).Sessions[0]
	ask := func(request *api.Request) error {
		if err := stream.Send(&api.ClientFrame{Requests: []*api.Request{request}}); err != nil {
			return err
		}
		replies, err := stream.Take()
		if err == nil && replies[0].GetCode() != api.Code_CODE_OK {
			err = fmt.Errorf("answered %v: %s", replies[0].GetCode(), replies[0].GetMessage())
		}
		s.Answered++
		return err
	}
	open := s.Request()
	open.Op = &api.Request_Open{Open: &api.Open{TtlNs: int64(time.Minute), Host: "bench", Pid: 1, Program: "snapshot"}}
	if err := ask(open); err != nil {
		return err
	}
	acquire := s.Request()
	acquire.Op = &api.Request_Acquire{Acquire: &api.Acquire{Class: api.Class_CLASS_ELECTION, Name: fmt.Sprintf("snapshot-%x", s.Secret)}}
	if err := ask(acquire); err != nil {
		return err
	}
	value := make([]byte, 64<<10)
	for now := before; now < before+len(r.addresses); {
		for range 16 {
			update := s.Request()
			update.Op = &api.Request_Update{Update: &api.Update{Hold: acquire.Sequence, Value: value}}
			if err := ask(update); err != nil {
				return err
			}
			if err := pause(ctx, 5*time.Millisecond); err != nil {
				return err
			}
		}
		if now, err = sum(ctx, r.addresses, snapshotsTaken); err != nil {
			return err
		}
	}
	end := s.Request()
	end.Op = &api.Request_Close{Close: &api.Close{}}
	return ask(end)
}

// snapshotsTaken is the metric that counts the snapshots of a server.
const snapshotsTaken = "conclave_snapshots_total"

// sum returns the sum of a metric over all servers.
func sum(ctx context.Context, addresses []string, name string) (sum int, err error) {
	for _, address := range addresses {
		n, err := metric(ctx, address, name)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// metric returns a metric of a server. It sums up a metric with labels.
func metric(ctx context.Context, address, name string) (int, error) {
	text, err := get(ctx, "http://"+address+"/metrics")
	if err != nil {
		return 0, err
	}
	sum, found := 0.0, false
	for line := range strings.Lines(string(text)) {
		rest, is := strings.CutPrefix(line, name)
		if !is || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
		if err != nil {
			return 0, err
		}
		sum, found = sum+v, true
	}
	if !found {
		return 0, fmt.Errorf("server at %s has no figure %s", address, name)
	}
	return int(sum), nil
}

// table compares three groups of spells: without other work, with readers, and with programs.
func (m *readersReport) table() string {
	sums := m.Spells[len(m.Spells)-3:]
	quiet, beside, programs := &sums[0], &sums[1], &sums[2]
	var rows [][]string
	for _, of := range []struct {
		what string
		in   func(*spell) *quantiles
	}{{"acquire", func(s *spell) *quantiles { return &s.Acquire }}, {"renew", func(s *spell) *quantiles { return &s.Renew }}} {
		for _, q := range []struct {
			name string
			at   func(*quantiles) float64
		}{
			{"p50", func(q *quantiles) float64 { return q.P50 }}, {"p99", func(q *quantiles) float64 { return q.P99 }},
			{"p99.9", func(q *quantiles) float64 { return q.P999 }}, {"longest", func(q *quantiles) float64 { return q.Max }},
		} {
			row := []string{of.what + ", " + q.name}
			for i := range sums {
				row = append(row, digits(q.at(of.in(&sums[i]))))
			}
			rows = append(rows, row)
		}
	}
	rows = append(rows, []string{"processors in use", digits(quiet.CPU / quiet.Seconds), digits(beside.CPU / beside.Seconds), digits(programs.CPU / programs.Seconds)})
	text := table([]string{"ms", "beside nothing", "beside readers", "beside programs that compute as much"}, rows)
	return text + fmt.Sprintf("\n%d sessions hold %d locks; the three servers have %.0f MB of memory. "+
		"%.0f acquires and as many releases, and %.0f renewals a second, where %.0f acquires is the highest rate. "+
		"%s with a scan of %d locks (%.1f s), a backup of %.0f MB (%.1f s) and %s each, which cost %.1f s of processor time without other load. "+
		"Measured for %.0f s beside nothing, with %s, for %.0f s beside readers, and for %.0f s beside programs, with %s. The term was %d before and %d after.\n",
		m.Sessions, m.Locks, float64(m.Resident)/1e6, m.Rate, m.Renewals, m.Highest,
		plural(m.Rounds, "round"), beside.Scanned/m.Rounds, beside.Scan/float64(m.Rounds), float64(beside.Backup/m.Rounds)/1e6, beside.BackedUp/float64(m.Rounds),
		plural(beside.Snapshots/m.Rounds, "snapshot"), m.Alone, quiet.Seconds, plural(quiet.Snapshots, "snapshot"), beside.Seconds, programs.Seconds, plural(programs.Snapshots, "snapshot"), m.Terms[0], m.Terms[1])
}

package nemesis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
)

// testTimeout is the time for anything that must happen soon. After the last fault, all workers must
// be served within it.
const testTimeout = time.Minute

// runPlan runs all parts of a plan with random faults.
func runPlan(p plan, w *world) error {
	s := &trial{
		plan: p, world: w, began: time.Now(),
		faults: make(map[string]int), killed: make(map[int]int64), programs: make(map[int]*program),
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.Lasts+5*testTimeout)
	defer cancel()
	if err := s.open(ctx); err != nil {
		return err
	}
	s.say("seed %d: %d servers and %d programs, each in a network namespace of its own", p.Seed, servers, hosts)
	if err := s.served(ctx); err != nil {
		return err
	}
	keeping, stop := context.WithCancel(ctx)
	defer stop()
	k := &keeper{client: s.client, fences: make(map[string]uint64)}
	var kept sync.WaitGroup
	kept.Go(func() { k.keep(keeping) })
	if err := s.injectFaults(ctx); err != nil {
		return err
	}
	healed := time.Now()
	if err := errors.Join(s.served(ctx), s.whole(ctx)); err != nil {
		return err
	}
	recovery := time.Since(healed)
	stop()
	kept.Wait()
	if err := errors.Join(k.check(ctx), s.close()); err != nil {
		return err
	}
	s.client.Close()
	if err := s.cluster.Stop(); err != nil {
		return err
	}
	return s.summarize(k, recovery)
}

// injectFaults runs the faults. A short plan runs them one after the other. In a long plan, faults of
// the network and faults of processes happen at the same time.
func (s *trial) injectFaults(ctx context.Context) error {
	if s.plan.Lasts == 0 {
		return s.runFaults(ctx, slices.Values(s.short()), 700*time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(ctx, s.plan.Lasts)
	defer cancel()
	var injectors sync.WaitGroup
	var errs [2]error
	for i, draw := range []func(*rand.Rand) fault{s.drawLink, s.drawProcess} {
		random := rand.New(rand.NewPCG(s.plan.Seed, uint64(i)))
		drawn := func(yield func(fault) bool) {
			for ctx.Err() == nil && yield(draw(random)) {
			}
		}
		injectors.Go(func() { errs[i] = s.runFaults(ctx, drawn, 600*time.Millisecond) })
	}
	injectors.Wait()
	return errors.Join(errs[:]...)
}

// runFaults runs faults one after the other, with a pause after each. All of them have ended when it
// returns.
func (s *trial) runFaults(ctx context.Context, faults func(func(fault) bool), calm time.Duration) error {
	for f := range faults {
		says, end, err := f.begin()
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, errors.Join(err, s.cluster.Died()))
		}
		s.say("%s, for %v", says, f.lasts)
		s.mu.Lock()
		s.faults[f.name]++
		s.mu.Unlock()
		pause(ctx, f.lasts)
		if err := end(); err != nil {
			return fmt.Errorf("end of %q: %w", f.name, errors.Join(err, s.cluster.Died()))
		}
		pause(ctx, calm)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// until calls wrong again and again until it returns nil.
func until(ctx context.Context, wrong func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := wrong(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("after %v still: %w", testTimeout, err)
		}
	}
}

// served waits until every worker of every program has entered again.
func (s *trial) served(ctx context.Context) error {
	before := s.observer.count()
	return until(ctx, func(context.Context) error {
		now := s.observer.count()
		for _, p := range s.programs {
			for i := range workersPerProgram {
				at := workerID{p.job.Program, i}
				if now[at] == before[at] {
					return errors.Join(fmt.Errorf("worker %d.%d is not served", at.program, at.member), s.cluster.Died())
				}
			}
		}
		return nil
	})
}

// whole waits until all servers are up, connected, and have the log.
func (s *trial) whole(ctx context.Context) error {
	return until(ctx, func(ctx context.Context) error {
		if err := s.cluster.Died(); err != nil {
			return err
		}
		members, err := admin.New(s.client).Members(ctx)
		if err != nil {
			return err
		}
		if len(members) != servers {
			return fmt.Errorf("there are %d members", len(members))
		}
		for _, m := range members {
			if !m.Voter || !m.Leader && !m.Connected || m.Behind > 200 {
				return fmt.Errorf("server %d is not back: %+v", m.ID, m)
			}
		}
		return nil
	})
}

// keeper acquires one lock after another, and keeps them all. An acknowledged grant must exist until
// the end.
type keeper struct {
	client *conclave.Client
	fences map[string]uint64
	newest *conclave.Lock
}

func (k *keeper) keep(ctx context.Context) {
	for ctx.Err() == nil {
		name := fmt.Sprint("kept-", len(k.fences))
		lock, err := k.client.Lock(ctx, name)
		if err != nil {
			continue
		}
		if fence, err := lock.Fence(); err == nil {
			k.fences[name], k.newest = fence, lock
		}
		pause(ctx, 20*time.Millisecond)
	}
}

func (k *keeper) check(ctx context.Context) error {
	if len(k.fences) == 0 {
		return errors.New("the keeper was granted no lock")
	}
	if err := k.newest.Context().Err(); err != nil {
		return fmt.Errorf("a session with a TTL of one minute was lost although it was renewed: %w", err)
	}
	resources, err := k.client.List(ctx, "kept-")
	if err != nil {
		return err
	}
	held := make(map[string]uint64)
	for _, r := range resources {
		for _, h := range r.Holders { // at most one; the loop below reports a missing one
			held[r.Name] = h.Fence
		}
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(k.fences)) {
		if held[name] != k.fences[name] {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("of %d acknowledged grants, %d are lost: %q", len(k.fences), len(missing), missing)
	}
	return nil
}

// summarize prints what happened, and returns an error if a promise was broken.
func (s *trial) summarize(k *keeper, recovery time.Duration) error {
	v := judge(s.observer.reports, s.killed)
	var counts []string
	for _, name := range slices.Sorted(maps.Keys(s.faults)) {
		counts = append(counts, fmt.Sprintf("%s %d", name, s.faults[name]))
	}
	s.say("faults: %s", strings.Join(counts, ", "))
	s.say("%d holds, %d ended by their deadline, %d by a kill; %d writes, %d of them refused for their fence", v.holds, v.late, v.unended, s.observer.writes, s.observer.refused)
	s.say("%d grants kept to the end; all served and all servers back %.1f s after the last fault", len(k.fences), recovery.Seconds())
	if len(v.problems) > 0 {
		return fmt.Errorf("%d broken promises, the first: %s", len(v.problems), strings.Join(v.problems[:min(5, len(v.problems))], "; "))
	}
	s.say("no promise was broken")
	return nil
}

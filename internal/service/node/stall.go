package node

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// Stall is an operation that has not ended within two election timeouts. What a leader
// with a hanging disk does is decided by the replica itself.
type Stall struct {
	What  string        // what has been under way
	Took  time.Duration // until now
	Since time.Time
	Disk  bool // it is a write to the disk, and not the wait for others to store entries
}

func (s Stall) String() string {
	return fmt.Sprintf("%s has been under way for %v (since %s)",
		s.What, s.Took.Round(100*time.Millisecond), s.Since.UTC().Format(time.RFC3339))
}

// stalls notices operations that do not end.
type stalls struct {
	limit time.Duration // two election timeouts
	disk  *disk
	waits atomic.Int64 // since when entries wait to be applied, or 0

	// The following fields belong to the goroutine of run.
	ticked int64 // when the last tick was
	logged Stall
}

// Stall returns the operation that has been under way for more than two election timeouts,
// or the zero Stall. It may be called at any time, and waits for neither disk nor replica.
func (n *Node) Stall() Stall { return n.stalls.current() }

func (s *stalls) current() Stall {
	what, took := s.disk.late(s.limit)
	disk := took > 0
	if since := s.waits.Load(); !disk && since != 0 && now()-since > int64(s.limit) {
		what, took = "applying entries of the log", time.Duration(now()-since)
	}
	if took == 0 {
		return Stall{}
	}
	return Stall{what, took, time.Now().Add(-took), disk}
}

// check logs when a stall begins and when it ends. Waiting is for how long the replica has entries
// that it cannot apply, or 0. After a gap between two ticks this process was suspended, and every
// operation looks old, so it waits for the next tick.
func (s *stalls) check(waiting int64, log *slog.Logger, dir string) {
	gap := now() - s.ticked
	s.ticked = now()
	s.waits.Store(0)
	if waiting > 0 {
		s.waits.Store(now() - waiting)
	}
	if gap > int64(s.limit/2) {
		return
	}
	switch stall := s.current(); {
	case stall.What == s.logged.What:
	case stall.What == "":
		log.Info("the stall is over", "what", s.logged.What, "took", time.Since(s.logged.Since))
		s.logged = Stall{}
	default:
		log.Warn("stalled: "+stall.String(), "dir", dir)
		s.logged = stall
	}
}

// leaveDisk waits until the disk has ended its work. If a write hangs, it stops waiting;
// the data directory is then released when the process ends.
func (n *Node) leaveDisk() {
	ended := make(chan struct{})
	go func() {
		n.disk.working.Wait()
		close(ended)
	}()
	timer := time.NewTimer(n.cfg.parting)
	defer timer.Stop()
	select {
	case <-ended:
		return
	case <-timer.C:
	}
	n.stuck = true
	err := fmt.Errorf("data directory %s: a write did not end within %v; the server stopped without waiting for it", n.cfg.Dir, n.cfg.parting)
	n.log.Error("stopping while a write to the disk hangs", "err", err)
	if n.err == nil {
		n.err = err
	}
}

package replica

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/version"
)

// Levels are the levels that a server reads, and its release, for people.
type Levels struct {
	Min, Max uint32
	Build    string
}

// Upgrade says how to change the level of the cluster.
type Upgrade uint8

// The upgrades.
const (
	// Finish raises the level now.
	Finish Upgrade = 1 + iota
	// Hold prevents the level from rising by itself, and Release ends that.
	Hold
	Release
	// Lower lowers the level by one.
	Lower
)

// Rise describes the next change of the level. Only the leader knows it.
type Rise struct {
	// Level is the level of the cluster, and Target the highest that all members read.
	Level, Target uint32
	// Held means that the level does not rise by itself.
	Held bool
	// In is the time until the level rises by itself, in ns; 0 if it does not.
	In int64
	// Obstacles are the reasons why the target is not higher, one line each.
	Obstacles []string
}

// Level returns the level of the cluster, as far as this server knows, or 0 if it has no
// state yet.
func (r *members) Level() uint32 {
	if r.core.Blank() {
		return 0
	}
	level, _ := r.reg.Level()
	return level
}

// checkLevel stops a server that does not read the level of its own state.
func (r *members) checkLevel() error {
	level, _ := r.reg.Level()
	return version.Check("the state of the cluster", level, r.cfg.Levels.Min, r.cfg.Levels.Max)
}

// reads returns the levels that a server reads, as it said when last met.
func (r *members) reads(id uint64) Levels {
	if id == r.cfg.ID {
		return r.cfg.Levels
	}
	return r.levels[id]
}

// Rise returns the next change of the level. Obstacles are reported only if at least one server
// reads the next level.
func (r *members) Rise() Rise {
	level, held := r.reg.Level()
	rise := Rise{Level: level, Held: held, Target: level}
	if !r.ready {
		return rise
	}
	var members []registry.Member
	for _, m := range r.Members() {
		if m.Standing != registry.Removed && !m.coming() {
			members = append(members, m.Member)
			rise.Target = max(rise.Target, r.reads(m.ID).Max)
		}
	}
	if rise.Target == level {
		return rise // no release with a higher level is running
	}
	for _, m := range members {
		said := r.reads(m.ID)
		switch {
		case said.Max == 0 || !r.live(m.ID):
			rise.Obstacles = append(rise.Obstacles, fmt.Sprintf("server %d: not connected; start it, or remove it from the cluster", m.ID))
			said.Max = level
		case said.Max <= level:
			rise.Obstacles = append(rise.Obstacles, fmt.Sprintf("server %d: release %s reads levels %d to %d; install one that reads level %d", m.ID, said.Build, said.Min, said.Max, level+1))
		}
		rise.Target = min(rise.Target, max(said.Max, level))
	}
	if rise.Target > level && !held {
		rise.In = max(1, r.risesAt-r.now)
	}
	return rise
}

// coming reports whether a server's id is only reserved. It will be admitted if it can
// read the level that the cluster has at that time.
func (m *Member) coming() bool { return m.Reserved() && !m.Voter && !m.Learner }

// youth is the divisor of the soak time that gives the time for which a cluster counts as new.
const youth = 1800

// raise raises the level when all members, including learners, have been able to read the next
// one for the soak time: until then a downgrade of a server is possible. A cluster that is
// unused or new does not wait.
func (r *members) raise() {
	rise := r.Rise()
	if rise.Target == rise.Level || rise.Target != r.rising {
		r.rising, r.risesAt = rise.Target, r.now+r.cfg.LevelSoak
	}
	if rise.Target > rise.Level && !rise.Held && (r.now >= r.risesAt || !r.reg.Used() || r.reg.Time() < r.cfg.LevelSoak/youth) {
		r.setLevel(rise.Level, rise.Target, false, registry.Origin{})
	}
}

// setLevel writes a change of the level into the log. If the level has changed meanwhile, the
// change has no effect.
func (r *members) setLevel(from, to uint32, stay bool, origin registry.Origin) {
	r.verdicts = append(r.verdicts, registry.Command{Op: registry.OpLevel, From: from, To: to, Stay: stay, By: &origin})
	r.changing = true
}

// ChangeLevel starts a change of the level, or finds that it is made: then done is true. The
// host calls it again until then, as with Change.
//
// Finish and Lower change to the level to; the other upgrades ignore it.
func (r *members) ChangeLevel(now int64, what Upgrade, to uint32, origin registry.Origin) (done bool, err error) {
	r.now = max(r.now, now)
	rise := r.Rise()
	switch {
	case !r.ready:
		return false, agreement.ErrNotLeader
	}
	if err := r.permit(origin, access.Upgrade); err != nil || r.changing {
		return false, err
	}
	switch what {
	case Finish:
		if rise.Level >= to {
			return true, nil
		}
		if rise.Target < to {
			return false, refuse("level %d: %s", to, append(rise.Obstacles, "no member reads it; install a newer release")[0])
		}
		return r.bring(rise, to, false, origin), nil
	case Hold, Release:
		return r.bring(rise, rise.Level, what == Hold, origin), nil
	case Lower:
		return r.lower(rise, to, origin)
	}
	return false, refuse("action %d: unknown", what)
}

// bring changes the level and stay, and reports whether they are as required.
func (r *members) bring(rise Rise, to uint32, stay bool, origin registry.Origin) bool {
	if rise.Level == to && rise.Held == stay {
		return true
	}
	r.setLevel(rise.Level, to, stay, origin)
	return false
}

// sends queues messages to other servers. A snapshot older than the present level is not sent to
// a server that does not read the snapshot's level: a newer one is being made. A server that does
// not read the present level gets the snapshot and stops, because it has to be told.
func (r *Replica) sends(messages []*raftpb.Message) {
	for _, m := range messages {
		if m.GetType() == raftpb.MsgSnap {
			level, err := registry.LevelOf(m.GetSnapshot().GetData())
			if err == nil && level < r.reads(m.GetTo()).Min && level < r.Level() {
				r.core.ReportSnapshot(m.GetTo(), false)
				continue
			}
		}
		r.out.Send = append(r.out.Send, m)
	}
}

// lowers reports whether a command lowers the level.
func lowers(c registry.Command) bool { return c.Op == registry.OpLevel && c.To < c.From }

// lower lowers the level by one, and keeps it there. All servers then make snapshots, so that no
// log has an entry of the higher level when a release returns that does not read it. A server
// that is down could not, so all must be connected.
func (r *members) lower(rise Rise, to uint32, origin registry.Origin) (bool, error) {
	switch {
	case rise.Level == to:
		return true, nil
	case rise.Level <= r.cfg.Levels.Min:
		return false, refuse("level %d: the cluster cannot come down further; it is the lowest level that this release reads", rise.Level)
	case to+1 != rise.Level:
		return false, refuse("level %d: from level %d the cluster can come down to %d only", to, rise.Level, max(rise.Level-1, r.cfg.Levels.Min))
	}
	for _, m := range r.Members() {
		switch said := r.reads(m.ID); {
		case m.Standing == registry.Removed:
		case !r.live(m.ID):
			return false, refuse("level %d: server %d is not connected; start it, or remove it from the cluster", to, m.ID)
		case said.Min > to:
			return false, refuse("level %d: server %d reads levels %d to %d", to, m.ID, said.Min, said.Max)
		}
	}
	if uses := r.reg.Freeze().Uses(rise.Level); len(uses) > 0 {
		return false, refuse("level %d: the cluster uses %s, which needs level %d", to, uses[0], rise.Level)
	}
	r.setLevel(rise.Level, to, true, origin)
	return false, nil
}

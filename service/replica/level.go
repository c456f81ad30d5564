package replica

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/service/access"
	"github.com/conclave-io/conclave/service/agreement"
	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/version"
)

// Levels are the levels that a server reads, and its release, for people.
type Levels struct {
	Min, Max uint32
	Build    string
}

// Upgrade says what is to be done about the level of the cluster.
type Upgrade uint8

// The upgrades.
const (
	// Finish raises the level now.
	Finish Upgrade = 1 + iota
	// Hold keeps the level from rising by itself, and Release ends that.
	Hold
	Release
	// Lower lowers the level by one.
	Lower
)

// Rise is what is known of the next level. Only the leader knows.
type Rise struct {
	// Level is that of the cluster, and Target the highest that all members read.
	Level, Target uint32
	// Held says that the level does not rise by itself.
	Held bool
	// In is in how long it rises by itself, in ns; 0 if it does not.
	In int64
	// Obstacles say why the target is not higher, one line each.
	Obstacles []string
}

// Level returns the level of the cluster as far as it is known here, or 0 while this
// server has no state yet.
func (r *Replica) Level() uint32 {
	if r.core.Blank() {
		return 0
	}
	level, _ := r.reg.Level()
	return level
}

// checkLevel stops a server that does not read the level of its own state.
func (r *Replica) checkLevel() error {
	level, _ := r.reg.Level()
	return version.Check("the state of the cluster", level, r.cfg.Levels.Min, r.cfg.Levels.Max)
}

// reads returns the levels that a server reads, as far as it was met.
func (r *Replica) reads(id uint64) Levels {
	if id == r.cfg.ID {
		return r.cfg.Levels
	}
	return r.levels[id]
}

// Rise returns what is known of the next level. While no server reads it, nothing is
// in its way.
func (r *Replica) Rise() Rise {
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
		return rise // no release is there that brings another
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

// coming reports whether a server's id is only kept for it. It will be let in at the
// level that the cluster has by then, or not at all.
func (m *Member) coming() bool { return m.Reserved() && !m.Voter && !m.Learner }

// youth is the part of the soak time for which a cluster counts as founded just now.
const youth = 1800

// raise raises the level when all members, learners too, have been able to read the
// next one for as long as the soak time: until then the release before can come back.
// A cluster that nobody has used need not wait, nor one that was founded just now.
func (r *Replica) raise() {
	rise := r.Rise()
	if rise.Target == rise.Level || rise.Target != r.rising {
		r.rising, r.risesAt = rise.Target, r.now+r.cfg.LevelSoak
	}
	if rise.Target > rise.Level && !rise.Held && (r.now >= r.risesAt || !r.reg.Used() || r.reg.Time() < r.cfg.LevelSoak/youth) {
		r.setLevel(rise.Level, rise.Target, false, registry.Origin{})
	}
}

// setLevel puts a change of the level into the log. One that has changed meanwhile
// stays as it is.
func (r *Replica) setLevel(from, to uint32, stay bool, origin registry.Origin) {
	r.verdicts = append(r.verdicts, registry.Command{Op: registry.OpLevel, From: from, To: to, Stay: stay, Origin: origin})
	r.changing = true
}

// ChangeLevel brings a change of the level on its way, or finds that it is made: then
// done is true. It is to be called again until then, as Change is.
//
// Finish and Lower come to the level to; the others do not look at it.
func (r *Replica) ChangeLevel(now int64, what Upgrade, to uint32, origin registry.Origin) (done bool, err error) {
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

// bring brings the level to what it is to be, and reports whether it is that.
func (r *Replica) bring(rise Rise, to uint32, stay bool, origin registry.Origin) bool {
	if rise.Level == to && rise.Held == stay {
		return true
	}
	r.setLevel(rise.Level, to, stay, origin)
	return false
}

// Settled reports whether every release that reads the level of the cluster can start
// with what this server has on its disk: its newest snapshot was made since the level
// changed last.
func (r *Replica) Settled() bool { return r.levelled == 0 }

// sends takes messages to other servers. A snapshot that is older than the level of the
// cluster is not sent to a server that does not read it: a newer one is being made. One that
// does not read the level of the cluster is sent it, and stops: it has to be told.
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

// lower brings the level down by one, and keeps it there. All servers then make
// snapshots, so that no log has an entry of the higher level when a release comes
// back that does not read it. A server that is down could not.
func (r *Replica) lower(rise Rise, to uint32, origin registry.Origin) (bool, error) {
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
	if uses := r.reg.Uses(rise.Level); len(uses) > 0 {
		return false, refuse("level %d: the cluster uses %s, which needs level %d", to, uses[0], rise.Level)
	}
	r.setLevel(rise.Level, to, true, origin)
	return false, nil
}

package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/conclave-io/conclave/admin"
)

// changes has the parts of the report that --membership adds.
type changes struct {
	// Restarts counts the servers that were stopped and started again.
	Restarts int `json:"restarts"`
	// Replacements counts the servers that were killed, removed, and replaced by
	// new ones.
	Replacements   int `json:"replacements"`
	LeaderRemovals int `json:"leader_removals"`
	// SessionsLost counts the sessions of workers that existed at the beginning and not at
	// the end.
	SessionsLost int `json:"sessions_lost"`
}

// Lost returns, as the end of a sentence, how many sessions were lost.
func (r *Report) Lost() string {
	if r.changes == nil {
		return ""
	}
	return fmt.Sprintf(", %d sessions lost", r.SessionsLost)
}

// catchUp is how long a server may take to become a voter that has the whole log.
const catchUp = 15 * time.Second

// playMembership is the scenario in which the servers change and the workers do not.
func (s *stage) playMembership(ctx context.Context) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	if err := s.watch(ctx, 2*time.Second); err != nil {
		return err
	}
	before, err := s.sessions(ctx)
	if err != nil {
		return err
	}
	for id := 1; id <= s.cluster.Servers(); id++ {
		if err := s.restart(ctx, id); err != nil {
			return err
		}
	}
	if err := s.replaceFollower(ctx); err != nil {
		return err
	}
	if err := s.removeLeader(ctx); err != nil {
		return err
	}
	if err := s.watch(ctx, ttl+time.Second); err != nil {
		return err
	}
	after, err := s.sessions(ctx)
	if err != nil {
		return err
	}
	for _, id := range before {
		if !slices.Contains(after, id) {
			s.changes.SessionsLost++
		}
	}
	return s.close()
}

// sessions returns the ids of the sessions of all workers.
func (s *stage) sessions(ctx context.Context) ([]string, error) {
	all, err := admin.New(s.client).Sessions(ctx)
	var ids []string
	for _, one := range all {
		ids = append(ids, one.ID)
	}
	if err == nil && len(ids) < workers {
		err = fmt.Errorf("%d of %d workers have a session", len(ids), workers)
	}
	return ids, err
}

// restart stops a server, as for an upgrade, and starts it again.
func (s *stage) restart(ctx context.Context, id int) error {
	s.say("server %d stops", id)
	if err := s.cluster.End(id); err != nil {
		return err
	}
	if err := s.watch(ctx, 500*time.Millisecond); err != nil {
		return err
	}
	s.say("server %d starts again", id)
	if err := s.cluster.Restart(id); err != nil {
		return err
	}
	s.changes.Restarts++
	return s.awaitVoter(ctx, id)
}

// replaceFollower kills a server that does not lead and replaces it by another one.
func (s *stage) replaceFollower(ctx context.Context) error {
	leader, err := s.leader(ctx)
	if err != nil {
		return err
	}
	dead := leader%s.cluster.Servers() + 1
	s.say("SIGKILL to server %d, which is gone for good", dead)
	if err := s.cluster.Kill(dead); err != nil {
		return err
	}
	if err := s.watch(ctx, time.Second); err != nil {
		return err
	}
	if err := admin.New(s.client).RemoveMember(ctx, uint64(dead), false); err != nil {
		return err
	}
	s.say("server %d is removed from the cluster", dead)
	s.changes.Replacements++
	return s.join(ctx)
}

// removeLeader removes the leader, and lets another server join.
func (s *stage) removeLeader(ctx context.Context) error {
	leader, err := s.leader(ctx)
	if err != nil {
		return err
	}
	s.say("server %d, the leader, is to be removed from the cluster", leader)
	if err := admin.New(s.client).RemoveMember(ctx, uint64(leader), false); err != nil {
		return err
	}
	if err := s.cluster.Ended(leader); err != nil {
		return err
	}
	s.say("server %d handed over, was removed, and has stopped", leader)
	s.changes.LeaderRemovals++
	return s.join(ctx)
}

func (s *stage) join(ctx context.Context) error {
	id, err := s.cluster.Join()
	if err != nil {
		return err
	}
	s.say("server %d joins", id)
	if err := s.awaitVoter(ctx, id); err != nil {
		return err
	}
	s.say("server %d has the log, and votes", id)
	return s.watch(ctx, time.Second)
}

// awaitVoter waits until a server votes and has all of the log, or nearly all.
func (s *stage) awaitVoter(ctx context.Context, id int) error {
	const near = 100 // entries
	return s.cluster.Await(ctx, catchUp, fmt.Sprintf("server %d does not vote", id), func(ctx context.Context) (bool, error) {
		members, err := admin.New(s.client).Members(ctx)
		return slices.ContainsFunc(members, func(m admin.Member) bool {
			return m.ID == uint64(id) && m.Voter && m.Connected && m.MatchIndex > 0 && m.Behind < near
		}), err
	})
}

// Package stats counts what happened in runs.
package stats

import (
	"fmt"
	"time"

	"github.com/conclave-io/conclave/internal/test/leasemodel"
	"github.com/conclave-io/conclave/internal/test/longrun"
)

// Stats are counts of a run, or sums over many runs.
type Stats struct {
	Runs          int
	Nanos         int64 // simulated time
	Events        int
	Operations    int // of clients: acquire, release, cancel, update, transfer, revoke, query
	Renewals      int
	Faults        int
	Grants        int
	Lost          int // holds that ended because the client's deadline was over
	Ended         int // sessions that ended
	Leaders       int // terms with a leader
	Restarts      int
	Torn          int // writes of which a part survived a crash
	Unsynced      int // writes of which nothing survived a crash
	Snapshots     int // snapshots that leaders sent and members installed
	Changes       int // completed changes of the members
	Founded       int // servers that founded
	Emptied       int // disks that were emptied
	TakenAway     int // removed servers that were taken away in a power failure
	Rejoined      int // servers that found out that they had lost their data
	TakenBack     int // servers that were taken back after their disk was emptied
	Writes        int // writes of holders to the store that checks fences
	Refused       int // late writes that this store refused
	Limited       int // acquires that were refused because the state was at its limit
	Thefts        int // requests in the session of another client
	Floods        int // times that a client requested hundreds of locks at once
	Relayed       int // streams that a server passed on to the leader
	Connected     int // connections between servers
	Dropped       int // messages between servers, because a queue was full
	CopiesRefused int // connections that were refused because they came from a copy of a server
	BrokenOff     int // snapshots that did not reach their server
	CutOff        int // streams of clients that read no replies
	Histories     int // histories that were checked for linearizability
	Checked       int // operations in these histories
	Unknown       int // histories that were too hard to check

	// The following counts show how often each promise was checked.
	Alike     int   // entries and states of a server that were equal to those of an earlier one
	Pairs     int   // pairs of a waiting acquire and a later one that were granted in order
	Kept      int   // holds that a server with their entries had
	Alive     int   // sessions that a server had before their deadline
	Shared    int   // grants while others hold: readers, and units of a semaphore
	Handed    int   // grants of an exclusive resource after another holder
	Copies    int   // processes that were started with a copy of the data of a server
	Dismissed int   // sessions that an operator was asked to end
	Recalled  int   // holds that were asked back before their clients were told the grants
	Beside    int   // writes of concurrent holders that a store with floors accepted
	Told      int   // messages to observers
	Looked    int   // checks of what an observer knows
	Preferred int   // candidates elected after one of higher priority, or after an earlier one of the same priority
	Transfers int   // leaderships that were handed over to a named candidate
	Resigned  int   // servers that led and handed over
	Endings   int   // ended holds that the servers remember
	Overtaken int   // leaders that were asked to leave for a candidate of higher priority
	Patient   int   // checks of a patient candidate behind a leader of lower priority
	Replaced  int   // logs with later entries that a leader's snapshot replaced
	Nested    int   // acquires with keeps
	Deadlocks int   // acquires that were refused because of a deadlock
	Raised    int   // raises of the level that a leader proposed
	Expected  int   // comparisons of a rule with the history of its name
	Lingered  int   // grants of a name that waited until it was not closed any more
	Closed    int   // tries that were refused because the name was closed
	Periods   int   // periods in which a machine asked for the lock of a job
	JobRuns   int   // periods in which the job ran
	Settings  int   // changes of a setting that were answered
	Misnamed  int   // requests for names in another form that got into the log
	Attended  int   // checks of clients while a majority of the servers worked
	Longest   int64 // ns: the longest wait of a client in these checks
	Slowest   int64 // ns from the end of the faults until all waiters were served, at most

	Seats  SeatStats
	Hosts  HostStats
	Access AccessStats

	Compared leasemodel.Compared // decisions that the model of the sessions checked
}

// addParts adds the counts that only some plans have.
func (s *Stats) addParts(o *Stats) {
	s.Lingered += o.Lingered
	s.Expected += o.Expected
	s.Closed += o.Closed
	s.Settings += o.Settings
	s.Misnamed += o.Misnamed
	s.Periods += o.Periods
	s.JobRuns += o.JobRuns
	s.Seats.add(&o.Seats)
	s.Hosts.add(&o.Hosts)
	s.Access.add(&o.Access)
	s.Copies += o.Copies
	s.CopiesRefused += o.CopiesRefused
}

// Add adds the counts of other runs.
func (s *Stats) Add(o *Stats) {
	s.Runs += o.Runs
	s.Nanos += o.Nanos
	s.Events += o.Events
	s.Operations += o.Operations
	s.Renewals += o.Renewals
	s.Faults += o.Faults
	s.Grants += o.Grants
	s.Lost += o.Lost
	s.Ended += o.Ended
	s.Leaders += o.Leaders
	s.Restarts += o.Restarts
	s.Torn += o.Torn
	s.Unsynced += o.Unsynced
	s.Snapshots += o.Snapshots
	s.Changes += o.Changes
	s.Founded += o.Founded
	s.Emptied += o.Emptied
	s.TakenAway += o.TakenAway
	s.Rejoined += o.Rejoined
	s.TakenBack += o.TakenBack
	s.Writes += o.Writes
	s.Refused += o.Refused
	s.Floods += o.Floods
	s.Thefts += o.Thefts
	s.Limited += o.Limited
	s.Relayed += o.Relayed
	s.Connected += o.Connected
	s.Dropped += o.Dropped
	s.BrokenOff += o.BrokenOff
	s.CutOff += o.CutOff
	s.Histories += o.Histories
	s.Checked += o.Checked
	s.Unknown += o.Unknown
	s.Alike += o.Alike
	s.Pairs += o.Pairs
	s.Kept += o.Kept
	s.Alive += o.Alive
	s.Shared += o.Shared
	s.Handed += o.Handed
	s.Replaced += o.Replaced
	s.Preferred += o.Preferred
	s.Told += o.Told
	s.Looked += o.Looked
	s.Transfers += o.Transfers
	s.Endings += o.Endings
	s.Resigned += o.Resigned
	s.Overtaken += o.Overtaken
	s.Patient += o.Patient
	s.Beside += o.Beside
	s.Raised += o.Raised
	s.Nested += o.Nested
	s.Deadlocks += o.Deadlocks
	s.Attended += o.Attended
	s.Dismissed += o.Dismissed
	s.Recalled += o.Recalled
	s.Compared.Add(&o.Compared)
	s.addParts(o)
	s.addExtremes(o)
}

// addExtremes keeps the longest times.
func (s *Stats) addExtremes(o *Stats) {
	s.Longest, s.Slowest = max(s.Longest, o.Longest), max(s.Slowest, o.Slowest)
}

// TooHard returns an error if more than 1 in 1,000 histories were too hard to check. Then the
// checks are not sufficient.
func (s *Stats) TooHard() error {
	if all := s.Histories + s.Unknown; all >= 1000 && 1000*s.Unknown > all {
		return fmt.Errorf("%d of %d histories were too hard to check: at most 1 in 1,000 may be", s.Unknown, all)
	}
	return nil
}

// Figures returns the figures for a report. wall is the duration of the runs.
func (s *Stats) Figures(wall time.Duration) []longrun.Figure {
	hours := float64(s.Nanos) / 3600e9
	per := func(n int) float64 { return float64(n) / (float64(s.Nanos) / 1e9) }
	return []longrun.Figure{
		{Name: "simulated hours", Value: hours},
		{Name: "runs", Value: float64(s.Runs)},
		{Name: "violations", Value: 0},
		{Name: "operations", Value: float64(s.Operations)},
		{Name: "per second", Value: per(s.Operations)},
		{Name: "renewals", Value: float64(s.Renewals)},
		{Name: "grants", Value: float64(s.Grants)},
		{Name: "faults", Value: float64(s.Faults)},
		{Name: "per 10 s", Value: 10 * per(s.Faults)},
		{Name: "terms", Value: float64(s.Leaders)},
		{Name: "crashes", Value: float64(s.Restarts)},
		{Name: "writes torn or lost", Value: float64(s.Torn + s.Unsynced)},
		{Name: "snapshots installed", Value: float64(s.Snapshots)},
		{Name: "changes of members", Value: float64(s.Changes)},
		{Name: "servers that founded", Value: float64(s.Founded)},
		{Name: "disks emptied", Value: float64(s.Emptied)},
		{Name: "removed servers taken away in a power failure", Value: float64(s.TakenAway)},
		{Name: "servers that rejoined", Value: float64(s.Rejoined)},
		{Name: "emptied servers taken back", Value: float64(s.TakenBack)},
		{Name: "sessions ended", Value: float64(s.Ended)},
		{Name: "holds lost", Value: float64(s.Lost)},
		{Name: "floods of requests", Value: float64(s.Floods)},
		{Name: "acquires refused by the limit of the state", Value: float64(s.Limited)},
		{Name: "requests in sessions of others", Value: float64(s.Thefts)},
		{Name: "streams relayed", Value: float64(s.Relayed)},
		{Name: "connections of servers", Value: float64(s.Connected)},
		{Name: "messages between servers dropped", Value: float64(s.Dropped)},
		{Name: "snapshots that broke off", Value: float64(s.BrokenOff)},
		{Name: "streams of clients cut off", Value: float64(s.CutOff)},
		{Name: "late writes refused", Value: float64(s.Refused)},
		{Name: "histories linearizable", Value: float64(s.Histories)},
		{Name: "operations in them", Value: float64(s.Checked)},
		{Name: "histories too hard", Value: float64(s.Unknown)},
		{Name: "states told to observers", Value: float64(s.Told)},
		{Name: "grants in turn", Value: float64(s.Pairs)},
		{Name: "grants after a name was closed", Value: float64(s.Lingered)},
		{Name: "comparisons of rules with the history of names", Value: float64(s.Expected)},
		{Name: "tries of a closed name refused", Value: float64(s.Closed)},
		{Name: "periods of a job", Value: float64(s.Periods)},
		{Name: "periods in which it ran", Value: float64(s.JobRuns)},
		{Name: "changes of a setting", Value: float64(s.Settings)},
		{Name: "names in another form in the log", Value: float64(s.Misnamed)},
		{Name: "decisions that the model allows", Value: float64(s.Compared.Sum())},
		{Name: "longest wait for a majority that is well, s", Value: float64(s.Longest) / 1e9},
		{Name: "copies of servers", Value: float64(s.Copies)},
		{Name: "copies refused", Value: float64(s.CopiesRefused)},
		{Name: "slowest recovery, s", Value: float64(s.Slowest) / 1e9},
		{Name: "simulated hours per hour", Value: float64(s.Nanos) / float64(wall)},
	}
}

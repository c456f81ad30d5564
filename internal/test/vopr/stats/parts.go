package stats

// SeatStats are counts of plans in which algorithms guard names.
type SeatStats struct {
	Renewals int // of seats, answered
	Epochs   int
	Expired  int // seats whose leases expired
	Closed   int // seats that their owners closed
	Adopted  int // holds that the heir of a leaving home took over
	Entered  int // holds by algorithms
	Granted  int // grants by agreement of names that algorithms guard at other times
	Moved    int // requests that agreement redirected to an algorithm
	Switched int // completed changes of guards
}

func (s *SeatStats) add(o *SeatStats) {
	s.Renewals += o.Renewals
	s.Epochs += o.Epochs
	s.Expired += o.Expired
	s.Closed += o.Closed
	s.Adopted += o.Adopted
	s.Entered += o.Entered
	s.Granted += o.Granted
	s.Moved += o.Moved
	s.Switched += o.Switched
}

// HostStats are counts of plans in which servers run the algorithms.
type HostStats struct {
	Grants    int // grants by an algorithm
	Agreed    int // grants by agreement of the same names
	Moved     int // requests that were repeated elsewhere
	Batches   int // batches of frames that arrived
	Breaks    int // broken lanes
	Gone      int // seats that a host gave up or lost
	Farewells int // streams to homes that their servers ended
	Lost      int // holds at homes that their clients lost
	Asked     int // requests of the operator to end a hold
	Heirs     int // homes that another server took over
	Handed    int // holds that clients kept in such a case
	Near      int // grants to programs within the processes of servers
	Doubts    int // reports of seats that suspected a member
	Elected   int // coordinators that were elected

	Longest int64 // longest time that a client waited for a free name without a fault, in ns
}

func (s *HostStats) add(o *HostStats) {
	s.Grants += o.Grants
	s.Agreed += o.Agreed
	s.Moved += o.Moved
	s.Batches += o.Batches
	s.Breaks += o.Breaks
	s.Gone += o.Gone
	s.Farewells += o.Farewells
	s.Lost += o.Lost
	s.Asked += o.Asked
	s.Heirs += o.Heirs
	s.Handed += o.Handed
	s.Near += o.Near
	s.Doubts += o.Doubts
	s.Elected += o.Elected
	s.Longest = max(s.Longest, o.Longest)
}

// AccessStats counts events in plans with rules.
type AccessStats struct {
	Changed   int // changes of the rules that were applied
	Denied    int // acquires refused by the rules
	Withdrawn int // waits ended by a change of the rules
	Quotas    int // acquires refused by a quota
	Judged    int // decisions that the judge checked
	Confirmed int // changes that all homes confirmed
	AtHomes   int // grants of homes that the judge checked
	Refused   int // acquires that homes denied
}

func (s *AccessStats) add(o *AccessStats) {
	s.Changed += o.Changed
	s.Denied += o.Denied
	s.Withdrawn += o.Withdrawn
	s.Quotas += o.Quotas
	s.Judged += o.Judged
	s.Confirmed += o.Confirmed
	s.AtHomes += o.AtHomes
	s.Refused += o.Refused
}

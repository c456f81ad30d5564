package registry

import (
	"slices"

	"github.com/conclave-io/conclave/internal/kit/histogram"
)

// Deeds counts the effects of entries, for metrics. It is not part of the state, and no command
// depends on it. It does not count the seats of servers, nor grants by algorithms.
type Deeds struct {
	// Opened counts new sessions. Over counts ended ones: Closed by their clients, Expired, or
	// Dropped because somebody else ended them.
	Opened uint64
	Over   [endings]uint64
	// Grants counts new holds by class, Ended those that ended, and Revoked those whose holders
	// were asked to leave.
	Grants  [classes]uint64
	Ended   [endings]uint64
	Revoked [motives]uint64
	// Quotas counts requests refused by a quota, by QuotaKinds.
	Quotas [len(QuotaKinds)]uint64
	// Waits are the times from queueing to the grant of requests that waited, and Holds the
	// times from the grant to the end, by class.
	Waits, Holds [classes]histogram.Durations
}

// Motive is the reason why a holder was asked to leave.
type Motive uint8

// The motives.
const (
	ByOperator Motive = iota // an operator revoked the hold
	ByPatience               // a candidate of higher priority has waited long enough
	ByTransfer               // the leader hands over
	ByEnd                    // somebody else ends the session
	ByGuard                  // the guard of the name changes

	motives
)

// Motives are the names in metrics.
var Motives = [motives]string{"operator", "patience", "transfer", "end", "guard"}

// QuotaKinds are the quantities that quotas bound.
var QuotaKinds = [...]string{"sessions", "claims", "bytes"}

// overQuota counts a request that a quota refused.
func (d *Deeds) overQuota(kind string) {
	if d != nil {
		d.Quotas[slices.Index(QuotaKinds[:], kind)]++
	}
}

// opened counts a new session.
func (d *Deeds) opened() {
	if d != nil {
		d.Opened++
	}
}

// over counts a session that ends.
func (d *Deeds) over(s *session, how Ending) {
	if d != nil && s.server == 0 {
		d.Over[how]++
	}
}

// granted counts a claim that now holds.
func (d *Deeds) granted(c *claim) {
	if d != nil {
		d.Grants[c.resource.class]++
	}
}

// waited records how long a claim that is now granted has waited.
func (d *Deeds) waited(c *claim, now int64) {
	if d != nil {
		d.Waits[c.resource.class].Note(now - c.since)
	}
}

// ended counts a hold that ends now.
func (d *Deeds) ended(c *claim, how Ending, now int64) {
	if d != nil {
		d.Ended[how]++
		d.Holds[c.resource.class].Note(now - c.since)
	}
}

// asked counts a holder that is asked to leave.
func (d *Deeds) asked(why Motive) {
	if d != nil {
		d.Revoked[why]++
	}
}

package registry

import (
	"slices"

	"github.com/conclave-io/conclave/internal/histogram"
)

// Deeds counts what entries brought about, for those who watch over a cluster. It is no
// part of the state, and no command depends on it. Seats of servers are not counted, nor
// is what algorithms grant.
type Deeds struct {
	// Opened counts sessions, and Over those that ended: Closed by their clients, Expired,
	// or Dropped because somebody else ended them.
	Opened uint64
	Over   [endings]uint64
	// Grants counts holds by class, Ended those that ended, and Revoked those whose holders
	// were asked to leave.
	Grants  [classes]uint64
	Ended   [endings]uint64
	Revoked [motives]uint64
	// Quotas counts requests that a quota refused, by QuotaKinds.
	Quotas [len(QuotaKinds)]uint64
	// Waits are the times from the queue to the grant, of requests that waited, and Holds
	// those from the grant to the end, by class.
	Waits, Holds [classes]histogram.Durations
}

// Motive is why a holder was asked to leave.
type Motive uint8

// The motives.
const (
	ByOperator Motive = iota // who revoked the hold
	ByPatience               // a candidate of higher priority waited long enough
	ByTransfer               // the leader hands over
	ByEnd                    // the session is ended by somebody else
	ByGuard                  // something else is to guard the name

	motives
)

// Motives are what figures call them.
var Motives = [motives]string{"operator", "patience", "transfer", "end", "guard"}

// QuotaKinds are what quotas bound.
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

// granted counts a claim that holds from now on.
func (d *Deeds) granted(c *claim) {
	if d != nil {
		d.Grants[c.resource.class]++
	}
}

// waited notes how long a claim waited that is granted now.
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

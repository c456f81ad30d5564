package line

import "github.com/conclave-io/conclave/api"

// Call is a request of the program, from its submission to its outcome. The host creates it and
// submits it once.
//
// A call to acquire or to revoke, and one with a nil Op, belongs to the open session. If that
// session is lost before the call has its outcome, the call starts again in the next session,
// which Again reports. A call about a hold ends with its session.
type Call struct {
	// Op is the request: only the Op of the Request is set. Nil asks only that a session is
	// open.
	Op *api.Request
	// Of is the call to acquire whose hold this call is about, or nil. The line fills in the
	// number of the hold.
	Of *Call
	// Data is for use by the host.
	Data any

	line    *Line    // that it was submitted to
	session *Session // nil until it is submitted to one
	moves   int      // how often the other line was said to be the right one
	// sequence is 0 while the call waits for its turn.
	sequence uint64
	// first is the reading just before the first transmission, and last the reading before the
	// newest; 0 before there is one.
	first, last int64
	// answered: a reply came. queued: the reply was QUEUED. finished: further replies are ignored.
	answered, queued, finished bool
	// told: the program knows the outcome. withdrawn: its caller is gone, and a grant is
	// released.
	told, withdrawn bool
	// target is the call to acquire that this call cancels.
	target *Call
	// asked means that the servers have asked for the hold back, and its grant has not arrived.
	asked bool
}

// Session returns the session in which the call is made, or nil.
func (c *Call) Session() *Session { return c.session }

// Sequence returns the number of the call in its session, 0 before it has one.
func (c *Call) Sequence() uint64 { return c.sequence }

// Left reports whether the call was ever transmitted.
func (c *Call) Left() bool { return c.first != 0 }

func (c *Call) acquires() bool { return c.Op.GetAcquire() != nil }

func (c *Call) extends() bool { return c.Op.GetOpen() != nil || c.Op.GetRenew() != nil }

// repeats reports whether the call starts again if its session is lost.
func (c *Call) repeats() bool {
	return c.acquires() || c.Op.GetRevoke() != nil
}

// reset returns the call to its state before it was submitted to a session.
func (c *Call) reset() {
	*c = Call{Op: c.Op, Of: c.Of, Data: c.Data, line: c.line, moves: c.moves}
}

// address fills in the number of the hold that the call is about.
func (c *Call) address() {
	if c.Of == nil {
		return
	}
	switch op := c.Op.GetOp().(type) {
	case *api.Request_Release:
		op.Release.Hold = c.Of.sequence
	case *api.Request_Update:
		op.Update.Hold = c.Of.sequence
	case *api.Request_Transfer:
		op.Transfer.Hold = c.Of.sequence
	}
}

// size returns the approximate size of the call in a frame.
func (c *Call) size() int {
	acquire := c.Op.GetAcquire()
	return 64 + len(acquire.GetName()) + len(acquire.GetValue()) + len(c.Op.GetUpdate().GetValue())
}

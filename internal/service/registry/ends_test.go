package registry

import (
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/version"
)

// speed says how fast an operation may end a hold of the session it is applied to.
type speed int

const (
	never     speed = iota // it ends no hold
	byOwner                // at once, on the owner's own word
	byExpiry               // at once, when the owner's deadline has passed
	asks                   // it asks the holder to leave, and ends nothing
	afterward              // it ends only what was asked for before
)

// No path but the owner's Close, the owner's Release and expiry ends a hold faster
// than a revocation. Every operation is classified here; a new one must be, too.
var speeds = map[Op]speed{
	OpOpen: never, OpRenew: never, OpClose: byOwner, OpAcquire: never, OpRelease: byOwner, OpCancel: never, OpUpdate: never,
	OpExpire: byExpiry, OpSilence: never, OpMember: never,
	OpRevoke: asks, OpTransfer: asks, OpDrop: afterward, OpOvertake: asks,
	OpEnd: asks, OpLevel: never, OpEnter: never, OpTurn: never, OpQuiet: never, OpGuard: asks,
	OpAccess: asks, OpNote: never, OpSet: never, OpTime: never, OpExpect: never,
}

// operations returns all operations: those that can be encoded into the log and decoded.
func operations() (ops []Op) {
	for op := Op(1); op != 0; op++ {
		if _, err := DecodeBatch((&Batch{Commands: []Command{{Op: op}}}).Append(nil, version.Max)); err == nil {
			ops = append(ops, op)
		}
	}
	return ops
}

func TestNothingEndsAHoldFasterThanARevocation(t *testing.T) {
	ops := operations()
	if len(ops) < 16 || !slices.Contains(ops, OpEnd) {
		t.Fatalf("the operations are %v", ops)
	}
	for _, op := range ops {
		class, known := speeds[op]
		if !known {
			t.Errorf("operation %d is not classified: say in speeds how fast it may end a hold", op)
			continue
		}
		for _, own := range []bool{true, false} {
			r, c := contested(op, own)
			before := *held(r)
			fx := applyAll(r, c)
			holders := r.resources.get(key{Lock, "n"}).holders()
			stays := len(holders) == 1 && holders[0].fence == before.fence
			if fast := class == byOwner && own || class == byExpiry; stays == fast {
				t.Errorf("operation %d, of the owner: %v: the hold stays: %v", op, own, stays)
			}
			asked := slices.ContainsFunc(fx.Outcomes, func(o Outcome) bool {
				return o.Session == before.session.id && o.Sequence == before.sequence && o.Result.Code == Revoked
			})
			if (op == OpRevoke || op == OpEnd || op == OpGuard || op == OpAccess) && !asked {
				t.Errorf("operation %d does not tell the holder that it is asked to leave", op)
			}
			if stays && asked != holders[0].revoked {
				t.Errorf("operation %d: the holder is told: %v, is revoked: %v", op, asked, holders[0].revoked)
			}
		}
	}
}

// contested returns a registry in which a holds n and leads e while b waits for both. It
// also returns a command of the operation that does as much as possible against a. The
// command comes from a, or else from b or another sender of such commands.
func contested(op Op, own bool) (*Registry, Command) {
	r := atLevel(version.Access)
	e := func(who string, priority int64) Command {
		return Command{Op: OpAcquire, Session: sessionNamed(who), Sequence: 3, Class: Election, Name: "e", Priority: priority, Patience: 1, Value: who}
	}
	applyAll(r, open("a"), open("b"), acquire("a", 2, "n"), acquire("b", 2, "n"), e("a", 0), e("b", 1))
	a := sessionNamed("a")
	c := Command{
		Op: op, Session: sessionNamed("b"), Sequence: 9, Hold: 2, Name: "n", TTL: 10e9, Value: "b", Term: 1,
		Verdicts: []Verdict{{Session: a, Renewals: r.sessions[a].renewals}}, Claims: []ClaimID{{a, 2}},
		Guarding: &Guarding{Use: view.Use{Algorithm: "central"}, Force: true},
		Change:   &access.Change{Force: true, EndSessions: true, Edits: []access.Edit{mode(access.Closed)}},
	}
	switch {
	case own:
		c.Session = a
	case op == OpEnd:
		c.Session, c.By = a, &Origin{Actor: "cert:ops"}
	case op == OpOvertake:
		c.Class, c.Name = Election, "e"
	}
	return r, c
}

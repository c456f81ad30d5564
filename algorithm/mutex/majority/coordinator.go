package majority

import "github.com/conclave-io/conclave/process"

// onRequest is R2. A vote for an older attempt of the same client does not count for
// the new one: its RELEASE is in flight and also brings the fence.
func (m *machine) onRequest(from process.ID, a uint64, fx *process.Effects) {
	switch {
	case m.holder == process.None:
		fx.Rule(ruleR2a)
	case m.holder == from && m.held == a:
		fx.Rule(ruleR2b)
	default:
		fx.Rule(ruleR2c)
		m.tell(from, denied, a, 0, fx)
		return
	}
	m.holder, m.held = from, a
	if m.leases {
		fx.Arm(leaseTimer, m.lease(), m.lease())
	}
	m.tell(from, vote, a, m.latest, fx)
}

// onRelease is R6c. The fence counts even if another process has the vote by now.
func (m *machine) onRelease(from process.ID, a uint64, f process.Fence, fx *process.Effects) {
	if !m.flaw.DropsFences {
		m.note(f, fx)
	}
	if m.holder != from || m.held != a {
		return
	}
	fx.Rule(ruleR6c)
	m.free()
	if m.leases {
		fx.Disarm(leaseTimer)
	}
}

// onClaim is R10b.
func (m *machine) onClaim(from process.ID, a uint64, f process.Fence, fx *process.Effects) {
	if m.holder != from || m.held != a {
		fx.Rule(ruleR10c)
		m.tell(from, denied, a, 0, fx)
		return
	}
	fx.Rule(ruleR10b)
	m.note(f, fx)
	m.tell(from, claimed, a, 0, fx)
}

// onExpiry is R9.
func (m *machine) onExpiry(fx *process.Effects) {
	fx.Rule(ruleR9)
	m.free()
}

func (m *machine) free() { m.holder, m.held = process.None, 0 }

// note keeps the highest fence, on disk.
func (m *machine) note(f process.Fence, fx *process.Effects) {
	if f > m.latest {
		m.latest = f
		fx.Save()
	}
}

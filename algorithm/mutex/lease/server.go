package lease

import "github.com/conclave-io/conclave/process"

// onRequest is R2.
func (m *machine) onRequest(from process.ID, a uint64, now process.Duration, fx *process.Effects) {
	if m.holder != process.None || !m.unknown.Empty() {
		fx.Rule(ruleR2b)
		if from == m.self {
			m.onDenied(m.self, a, fx)
			return
		}
		fx.Send(from, process.Message{Type: denied, Seq: a})
		return
	}
	fx.Rule(ruleR2a)
	m.holder, m.held = from, a
	fx.Arm(leaseTimer.For(from), m.ttl, m.ttl)
	if m.fences {
		m.last++
		fx.Save()
	}
	if from == m.self {
		m.onGranted(m.self, a, m.last, now, fx)
		return
	}
	fx.Send(from, process.Message{Type: granted, Seq: a, Fence: m.last})
}

// onRelease is R6c. A RELEASE that is late, or of an attempt that was denied, may
// arrive while another process has the lock.
func (m *machine) onRelease(from process.ID, a uint64, fx *process.Effects) {
	mine := m.holder == from && m.held == a
	if m.holder == process.None || !mine && !m.flaw.FreesAny {
		return
	}
	fx.Rule(ruleR6c)
	fx.Disarm(leaseTimer.For(m.holder))
	m.holder, m.held = process.None, 0
}

// onExpiry is R9, and the end of R10.
func (m *machine) onExpiry(p process.ID, fx *process.Effects) {
	fx.Rule(ruleR9)
	m.unknown.Remove(p)
	if m.holder == p {
		m.holder, m.held = process.None, 0
	}
}

// onRestart is R10. The client on this process has crashed, too.
func (m *machine) onRestart(fx *process.Effects) {
	if !m.serves() || m.flaw.GrantsAtOnce {
		return
	}
	fx.Rule(ruleR10)
	for p := range process.ID(m.c.N) {
		if p != m.self {
			m.unknown.Add(p)
			fx.Arm(leaseTimer.For(p), m.ttl, m.ttl)
		}
	}
}

package host

import (
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/settings"
)

// No log entry decides about requests to acquire at a home. The home decides by the rules that its
// server has applied, at the request and again whenever they change.

// Rules tells the host the rules of access that its server has applied.
func (h *Host) Rules(now int64, rules *access.State) {
	defer h.guard()
	if h.output.Err != nil {
		return
	}
	h.begin(now)
	h.home.rules = rules
	h.home.obey()
	h.home.answerAll()
	h.finish()
}

// Settings tells the host the settings of the cluster that its server has applied.
func (h *Host) Settings(now int64, s *settings.State) {
	defer h.guard()
	if h.output.Err != nil {
		return
	}
	h.begin(now)
	h.settings = s
	h.finish()
}

// SettingsRevision returns the revision of the settings by which this home goes.
func (h *Host) SettingsRevision() uint64 { return h.settings.Revision() }

// Revision returns the revision of the rules by which this home goes: every request that it grants
// from now on is allowed by them, or by newer ones.
func (h *Host) Revision() uint64 { return h.home.rules.Revision() }

// obey ends the waits that the rules do not allow; answerAll passes that on. A frozen home ends nothing. Nor
// does it grant anything: the waits are examined before they continue, here or at another member.
func (h *home) obey() {
	if h.frozen {
		return
	}
	for in := h.machines.local.first; in != nil; in = in.next {
		if in.state.Wanted {
			h.reg.RefuseSome(in.name, func(owner string) *registry.Result { return h.forbids(owner, in.name) }, &h.fx)
		}
	}
}

// forbids returns the refusal of a lock to the owner of a session, or nil if the rules allow it.
func (h *home) forbids(owner, name string) *registry.Result {
	allowed, why := h.rules.Decide(owner, access.Hold, access.Lock, name)
	if allowed {
		return nil
	}
	return &registry.Result{Code: registry.Denied, Message: why.String()}
}

package host

import "github.com/conclave-io/conclave/service/registry"

// Deny ends the waits for which refuse returns a result: the rules have changed, and do not let
// the owner of the session hold the name any more. It reports whether it did so. While the home is
// frozen for a handover, it does not.
func (h *Host) Deny(now int64, refuse func(owner, name string) *registry.Result) (done bool) {
	defer h.guard()
	if h.output.Err != nil {
		return true
	}
	h.begin(now)
	if h.still() {
		return false
	}
	for in := h.local.first; in != nil; in = in.next {
		if in.state.Wanted {
			h.home.reg.RefuseSome(in.name, func(owner string) *registry.Result { return refuse(owner, in.name) }, &h.home.fx)
		}
	}
	h.answerAll()
	h.finish()
	return true
}

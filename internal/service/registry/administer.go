package registry

import "github.com/conclave-io/conclave/internal/service/access"

// setLevel changes the level, if it is still the one that the command names.
func (r *Registry) setLevel(c *Command) {
	if c.From != r.level || r.pinned(c.To) {
		return
	}
	if refusal := (Result{}); r.forbids(c, access.Upgrade, &refusal) {
		r.put(Record{Origin: c.Origin(), Kind: "level", Reason: levels(c), Result: refusal.Code})
		return
	}
	r.level, r.stay = c.To, c.Stay
	if !hasKeeps(r.level) {
		r.forgetKeeps()
	}
	if c.From != c.To {
		r.relevel()
	}
	r.put(Record{Origin: c.Origin(), Kind: "level", Reason: levels(c), Result: OK})
}

// administer carries out an operator's command without a session, and records it.
func (r *Registry) administer(c *Command, fx *Effects) (result Result) {
	switch c.Op {
	case OpGuard:
		result = r.setGuard(c, fx)
		r.put(Record{Origin: c.Origin(), Kind: "guard", Name: c.Name, Reason: c.Value, Result: result.Code})
	case OpEnd:
		owner := ""
		if s := r.sessions[c.Session]; s != nil {
			owner = s.owner
		}
		result = r.dismiss(c, fx)
		r.put(Record{Origin: c.Origin(), Kind: "end-session", Name: c.Session.String(), Owner: owner, Reason: c.Value, Result: result.Code})
	case OpAccess:
		before := r.rules
		result = r.setRules(c, fx)
		r.putChange(c, before, result)
	case OpNote:
		result = r.putNote(c)
	}
	return result
}

package world

import "testing"

// TestModel checks that the model of a lock refuses histories that no lock can have.
func TestModel(t *testing.T) {
	grant := func(claim claimID, fence uint64, call, ret int64) operation {
		return operation{kind: opGrant, claim: claim, fence: fence, call: call, ret: ret}
	}
	op := func(kind opKind, claim claimID, call, ret int64, claims ...claimID) operation {
		var present holders
		for _, c := range claims {
			present.add(c.text())
		}
		return operation{kind: kind, claim: claim, call: call, ret: ret, holders: present.claims}
	}
	for name, c := range map[string]struct {
		want    string
		history []operation
	}{
		"in turn":           {"Ok", []operation{grant(1, 1, 0, 1), op(opRelease, 1, 2, 3), grant(2, 2, 0, 4)}},
		"two at once":       {"Illegal", []operation{grant(1, 1, 0, 1), grant(2, 2, 2, 3), op(opRelease, 1, 4, 5)}},
		"fence goes back":   {"Illegal", []operation{grant(1, 2, 0, 1), op(opRelease, 1, 2, 3), grant(2, 1, 4, 5)}},
		"ended in between":  {"Ok", []operation{grant(1, 1, 0, 1), op(opEnd, 1, 2, forever), grant(2, 2, 3, 4)}},
		"ended too early":   {"Illegal", []operation{grant(1, 1, 0, 1), op(opEnd, 1, 9, forever), grant(2, 2, 3, 4)}},
		"refused, but free": {"Illegal", []operation{op(opHeld, 1, 0, 1)}},
		"refused by whom?":  {"Ok", []operation{op(opMaybe, 2, 0, forever), op(opHeld, 1, 0, 1)}},
		"query is stale":    {"Illegal", []operation{grant(1, 1, 0, 1), op(opRelease, 1, 2, 3), op(opQuery, 0, 4, 5, 1)}},
		"query sees it":     {"Ok", []operation{grant(1, 1, 0, 1), op(opRelease, 1, 4, 8), op(opQuery, 0, 4, 5, 1)}},
		"done twice":        {"Illegal", []operation{grant(1, 1, 0, 1), op(opNotHeld, 1, 2, 3)}},
	} {
		res := Resource{history: c.history}
		if got := res.linearizable(); string(got) != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

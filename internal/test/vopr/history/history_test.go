package history

import "testing"

// TestModel checks that the model of a lock refuses histories that no lock can have.
func TestModel(t *testing.T) {
	grant := func(claim ClaimID, fence uint64, call, ret int64) Operation {
		return Operation{Kind: Grant, Claim: claim, Fence: fence, Call: call, Ret: ret}
	}
	op := func(kind Kind, claim ClaimID, call, ret int64, claims ...ClaimID) Operation {
		return Operation{Kind: kind, Claim: claim, Call: call, Ret: ret, Holders: Holders(claims...)}
	}
	for name, c := range map[string]struct {
		want    string
		history []Operation
	}{
		"in turn":           {"Ok", []Operation{grant(1, 1, 0, 1), op(Release, 1, 2, 3), grant(2, 2, 0, 4)}},
		"two at once":       {"Illegal", []Operation{grant(1, 1, 0, 1), grant(2, 2, 2, 3), op(Release, 1, 4, 5)}},
		"fence goes back":   {"Illegal", []Operation{grant(1, 2, 0, 1), op(Release, 1, 2, 3), grant(2, 1, 4, 5)}},
		"ended in between":  {"Ok", []Operation{grant(1, 1, 0, 1), op(End, 1, 2, Forever), grant(2, 2, 3, 4)}},
		"ended too early":   {"Illegal", []Operation{grant(1, 1, 0, 1), op(End, 1, 9, Forever), grant(2, 2, 3, 4)}},
		"refused, but free": {"Illegal", []Operation{op(Held, 1, 0, 1)}},
		"refused by whom?":  {"Ok", []Operation{op(Maybe, 2, 0, Forever), op(Held, 1, 0, 1)}},
		"query is stale":    {"Illegal", []Operation{grant(1, 1, 0, 1), op(Release, 1, 2, 3), op(Query, 0, 4, 5, 1)}},
		"query sees it":     {"Ok", []Operation{grant(1, 1, 0, 1), op(Release, 1, 4, 8), op(Query, 0, 4, 5, 1)}},
		"done twice":        {"Illegal", []Operation{grant(1, 1, 0, 1), op(NotHeld, 1, 2, 3)}},
	} {
		if got := Linearizable(c.history, 1); string(got) != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

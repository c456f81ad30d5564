package mutants

// accessMutants are mistakes in access rules and quotas.
var accessMutants = []Mutant{
	{
		Name:   "rules-at-the-door-only",
		Why:    "The leader asks the rules before it writes a request into the log, and applying it does not: a change of the rules does not decide what stands behind it.",
		Access: true,
		Edits: []Edit{{
			"internal/service/registry/registry.go", "\tif r.closed() && r.control.refusesRequest(s, c, r.deeds, result) {\n", "\tif r.closed() && c.Op == OpRevoke && r.control.refusesRequest(s, c, r.deeds, result) {\n",
		}},
	},
	{
		Name:   "denied-and-still-waiting",
		Why:    "Who waits for what it may not hold any more keeps its place, and is granted it.",
		Access: true,
		Edits: []Edit{{
			"internal/service/registry/access.go", "\tr.withdrawDenied(fx)\n\tfor _, s := range anonymous {", "\tfor _, s := range anonymous {",
		}},
	},
	{
		Name:   "lost-right-loses-the-lock",
		Why:    "A change of the rules ends the holds that it would not grant: their holders believe in them.",
		Access: true,
		Edits: []Edit{{
			"internal/service/registry/access.go", "\tr.withdrawDenied(fx)\n\tfor _, s := range anonymous {",
			"\tr.withdrawDenied(fx)\n\tfor _, s := range slices.Collect(r.all()) {\n\t\tfor _, c := range s.sortedClaims(nil) {\n\t\t\tif r.closed() && c.held() && !r.rules.Allows(s.owner, access.Hold, access.Class(c.resource.class), c.resource.name) {\n\t\t\t\tr.drop(c, Stale, Dropped)\n\t\t\t\tr.settle(c.resource, fx)\n\t\t\t}\n\t\t}\n\t}\n\tfor _, s := range anonymous {",
		}},
	},
	{
		Name:   "quota-not-given-back",
		Why:    "What a session had when it ended counts on: its owner comes to the end of its quota with nothing in its hands.",
		Access: true,
		Edits: []Edit{{
			"internal/service/registry/session.go", "\tr.countClaim(c, -1)\n", "\tr.tally.bytes -= c.bytes()\n",
		}},
	},
	{
		Name:   "prefix-one-byte-short",
		Why:    "A rule on a prefix is one on a shorter prefix.",
		Access: true,
		Edits: []Edit{{
			"internal/service/access/decide.go", "p := &root.at(rule.Name).value", "p := &root.at(rule.Name[:max(len(rule.Name)-1, 0)]).value",
		}},
	},
	{
		Name:   "exact-before-prefixes",
		Why:    "A rule on a prefix wins over one on the exact name that has its length.",
		Access: true,
		Edits: []Edit{{
			"internal/service/access/decide.go", "p.exact = (p.below | p.allowExact) &^ p.denyExact", "p.exact = ((above|p.allowExact)&^p.denyExact | p.allow) &^ p.deny",
		}},
	},
	{
		Name:   "allow-after-deny",
		Why:    "Of two rules at one place the one that allows wins.",
		Access: true,
		Edits: []Edit{{
			"internal/service/access/decide.go", "p.below = (above | p.allow) &^ p.deny", "p.below = above&^p.deny | p.allow",
		}},
	},
	{
		Name:   "record-not-in-snapshot",
		Why:    "The record of acts is not in snapshots: servers that got one have another record.",
		Access: true,
		Edits: []Edit{{
			"internal/service/registry/access.go", "appendTrail(v.rules.Append(b), v.trail)", "appendTrail(v.rules.Append(b), nil)",
		}},
	},
	{
		Name:   "home-asks-no-rules",
		Why:    "A home accepts requests to acquire without asking the rules.",
		Access: true,
		Edits: []Edit{{
			"internal/service/host/home.go", "\tcase h.deny(conn, c):\n\t\treturn\n", "",
		}},
	},
	{
		Name:   "home-waits-outlive-rights",
		Why:    "A change of the rules does not end the waits at a home, and they are granted.",
		Access: true,
		Edits: []Edit{{
			"internal/service/host/rules.go", "\t\tif in.state.Wanted {\n", "\t\tif in.state.Wanted && h.rules == nil {\n",
		}},
	},
	{
		Name:   "home-takes-over-denied-waits",
		Why:    "A home grants waits that it has taken over, although its rules deny them.",
		Access: true,
		Edits: []Edit{{
			"internal/service/host/adopt.go", "\t\t\tas.home.obey() // the member may have gone by older rules\n", "",
		}},
	},
}

package mutants

// deadlockMutants are mistakes in the refusal of deadlocks.
var deadlockMutants = []Mutant{
	{
		Name: "deadlock-unseen",
		Why:  "A deadlock of more than one program is not seen: its members wait forever.",
		Edits: []Edit{{
			"internal/service/registry/deadlock.go", "\tif s.nodes[0].free {", "\tif s.nodes[0].free || len(s.nodes) > 1 {",
		}},
	},
	{
		Name: "session-is-proof",
		Why:  "A request is taken to keep all that its session holds: who holds and waits in two goroutines is refused.",
		Edits: []Edit{{
			"internal/service/registry/registry.go", "case len(c.Keeps) == 0 || r.mayWait(", "case r.mayWait(",
		}, {
			"internal/service/registry/keeps.go", "\tfor _, k := range named {", "\tfor _, other := range s.sortedClaims(nil) {\n\t\tif other.held() {\n\t\t\tnamed = append(named, Kept{other.resource.class, other.resource.name, other.fence})\n\t\t}\n\t}\n\tfor _, k := range named {",
		}},
	},
	{
		Name: "any-holder-blocks",
		Why:  "One blocked holder of a semaphore is enough to refuse a request, though another one goes on.",
		Edits: []Edit{{
			"internal/service/registry/deadlock.go", "s.nodes[at].all && kept < len(res.holders()) || kept == 0", "kept == 0",
		}, {
			"internal/service/registry/deadlock.go", "n.blocked--; n.all || n.blocked == 0", "n.blocked--; n.blocked == 0",
		}},
	},
	{
		Name: "one-reader-is-enough",
		Why:  "A writer is taken to go on when one of the readers leaves: a deadlock with the other one is not seen.",
		Edits: []Edit{{
			"internal/service/registry/deadlock.go", "\tcase !c.shared:\n\t\treturn false", "\tcase !c.shared:\n\t\treturn true",
		}},
	},
	{
		Name: "keeps-not-in-snapshot",
		Why:  "A snapshot does not say what waiters keep: a server that starts from one sees no deadlocks with them.",
		Edits: []Edit{{
			"internal/service/registry/snapshot.go", "\tif t.keeps != nil {\n\t\thas |= hasKept", "\tif t.keeps != nil && t.shared && !t.shared {\n\t\thas |= hasKept",
		}, {
			"internal/service/registry/snapshot.go", "\tif has&hasKept != 0 {\n\t\tb = appendKeeps", "\tif t.keeps != nil && t.shared && !t.shared {\n\t\tb = appendKeeps",
		}},
	},
}

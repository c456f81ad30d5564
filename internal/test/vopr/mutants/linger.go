package mutants

// lingerMutants are mistakes about names that stay closed after their holds.
var lingerMutants = []Mutant{
	{
		Name: "open-after-a-loss",
		Why:  "A name stays closed after a release, but not after its holder's session has expired: the machine dies in the middle of its job, and another one begins it again.",
		Edits: []Edit{{
			"internal/service/registry/linger.go", "if how == Expired || how == Dropped {\n\t\tuntil = max(until, now+c.lossDelay)\n\t}", "if how == Expired {\n\t\treturn now\n\t}",
		}},
	},
	{
		Name: "new-leader-opens",
		Why:  "A new leader lets its own clock be the replicated time: the time jumps ahead, and names open early.",
		Edits: []Edit{{
			"internal/service/replica/apply.go", "r.base, r.origin = r.reg.Time(), r.now", "r.base, r.origin = max(r.reg.Time(), r.now%3600e9), r.now",
		}},
	},
	{
		Name: "time-not-written",
		Why:  "The leader writes no entry when a name is due to open: those who wait for it wait until something else happens.",
		Edits: []Edit{{
			"internal/service/replica/apply.go", "if r.written < at && at <= now || now-r.written >= timeEvery {", "if at < 0 && now > 0 {",
		}},
	},
	{
		Name: "try-enters-closed",
		Why:  "A try looks only at the holders of a name, and enters it while it is closed.",
		Edits: []Edit{{
			"internal/service/registry/registry.go", "asked, closed := extrasOf(c, r.now), r.lingers.closed(k)\n", "asked, closed := extrasOf(c, r.now), r.lingers.closed(k)\n\tif c.Try {\n\t\tclosed = 0\n\t}\n",
		}},
	},
	{
		Name: "closed-forgotten-in-snapshots",
		Why:  "Snapshots do not have the names that stay closed: a server that starts from one grants them.",
		Edits: []Edit{{
			"internal/service/registry/linger.go", "\t\td.reg.startLinger(l)\n\t\tn++\n", "",
		}},
	},
}

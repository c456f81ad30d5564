package mutants

// seatMutants are mistakes in seats and guards, in plans in which algorithms on the servers guard
// names.
var seatMutants = []Mutant{
	{
		Name: "two-seats-of-a-server",
		Why:  "A server that came back takes part beside the seat that it had before: one epoch has it twice.",
		Live: true,
		Edits: []Edit{{
			"algorithm/view/log.go", "if !several || slices.Contains(l.Members, s)", "if several || !several || slices.Contains(l.Members, s)",
		}},
	},
	{
		Name: "seated-before-caught-up",
		Why:  "A server gets a seat although it lacks a part of the log. The others wait for it, complain, and go on without it; no promise breaks.",
		Live: true, Harmless: true,
		Edits: []Edit{{
			"internal/service/replica/seats.go", "server != r.cfg.ID && !r.caughtUp(&status, server):", "server != r.cfg.ID && !r.caughtUp(&status, server) && server == 0:",
		}},
	},
	{
		Name: "seat-ended-when-shunned",
		Why:  "The seat of a member that others complain of is ended at once, instead of being left to its lease: its clients still hold.",
		Live: true,
		Edits: []Edit{{
			"internal/service/replica/seats.go", "\t\tr.shunned[registry.SeatID(members[worst])] = true\n",
			"\t\tr.shunned[registry.SeatID(members[worst])] = true\n\t\tof, _ := r.reg.Session(registry.SeatID(members[worst]))\n\t\tr.judge(registry.OpExpire, []registry.Verdict{{Session: of.ID, Renewals: of.Renewals}})\n",
		}},
	},
	{
		Name: "seat-renewed-without-round",
		Why:  "A leader renews seats without asking a quorum whether it still leads: its successor has let them expire.",
		Live: true,
		Edits: []Edit{{
			"internal/service/replica/seats.go", "\tcase c.Op == registry.OpTurn && !awaited",
			"\tcase c.Op == registry.OpRenew && open && r.leases.Renew(c.Session, r.leaseClock()):\n\t\tr.clients.reply(conn, registry.Outcome{Session: c.Session, Sequence: c.Sequence, Result: registry.Result{Code: registry.OK, Remaining: s.TTL}})\n\tcase c.Op == registry.OpTurn && !awaited",
		}},
	},
	{
		Name: "quiet-over-a-start",
		Why:  "That nothing is held under a prefix counts in the next epoch too, though a home that left has given what it held to the one that said so.",
		Live: true,
		Edits: []Edit{{
			"algorithm/view/log.go", "l.Guards[i].Quiet, l.Guards[i].New = nil, false", "l.Guards[i].New = false",
		}},
	},
	{
		Name: "guard-changes-while-held",
		Why:  "What guards a prefix changes although agreement has granted locks under it: an algorithm grants them again.",
		Live: true,
		Edits: []Edit{{
			"internal/service/registry/guarded.go", "held = len(res.holders()) > 0 && l.GuardOf", "held = len(res.holders()) > 1 && l.GuardOf",
		}},
	},
	{
		Name: "waiters-left-behind",
		Why:  "Those who wait for a lock when an algorithm begins to guard it are told nothing: they wait forever.",
		Live: true,
		Edits: []Edit{{
			"internal/service/registry/guarded.go", "for elsewhere && len(res.queue()) > 0 {", "for elsewhere && len(res.queue()) > 1 {",
		}},
	},
}

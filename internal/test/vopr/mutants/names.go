package mutants

// nameMutants are mistakes about the form of names.
var nameMutants = []Mutant{
	{
		Name: "names-unasked",
		Why:  "The leader does not ask whether a new name has the form that the setting demands: two locks look alike.",
		Edits: []Edit{{
			"internal/service/replica/names.go", "problem != \"\" && !r.reg.Carried(c.Session, c.Sequence) {", "problem != \"\" && c.Sequence == 0 {",
		}},
	},
	{
		Name: "names-asked-at-arrival",
		Why:  "The leader asks when a request arrives, and not when it writes the request into the log: it may have waited since before the change, or a new leader may not have applied the change yet.",
		Edits: []Edit{
			{"internal/service/replica/seats.go", "\tnfc := r.reg.Settings().NFC()\n", "\tnfc := false\n"},
			{
				"internal/service/replica/submit.go", "\tcase r.ofServer(c):\n", "\tcase r.reg.Settings().NFC() && r.misnames(c) != \"\":\n\t\tr.clients.refuse(conn, at, registry.Invalid, r.misnames(c))\n\t\treturn\n\tcase r.ofServer(c):\n",
			},
		},
	},
}

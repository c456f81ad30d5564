package mutants

// watchMutants are mistakes in the failure detectors and elections of members.
var watchMutants = []Mutant{
	{
		Name: "elected-without-start",
		Why:  "An elected coordinator counts at once, without a START: members of one epoch take different servers for the coordinator.",
		Live: true,
		Edits: []Edit{{
			"algorithm/view/log.go", "l.Turning = true\n", "l.Turning = coordinator == 0\n",
		}},
	},
	{
		Name: "watch-without-start",
		Why:  "Another watch stack counts at once, without a START: members of one epoch run different ones.",
		Live: true,
		Edits: []Edit{{
			"algorithm/view/log.go", "u != l.Watch && len(l.Members) > 0", "u != l.Watch && len(l.Members) > MaxHeirs",
		}},
	},
	{
		Name: "seat-ended-by-doubt",
		Why:  "The seat of a member that the others suspect is ended at once, instead of being left to its lease: its clients still hold.",
		Live: true,
		Edits: []Edit{{
			"internal/service/replica/seats.go", "\treturn worst\n",
			"\tif worst != 0 {\n\t\tof, _ := r.reg.Session(registry.SeatID(members[worst]))\n\t\tr.judge(registry.OpExpire, []registry.Verdict{{Session: of.ID, Renewals: of.Renewals}})\n\t}\n\treturn worst\n",
		}},
	},
}

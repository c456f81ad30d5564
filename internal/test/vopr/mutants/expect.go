package mutants

// expectMutants are mistakes about rules that name what is to be held again and again.
var expectMutants = []Mutant{
	{
		Name: "release-not-noted",
		Why:  "A rule notes the ends of lost holds only: a job that runs well is overdue.",
		Edits: []Edit{{
			"internal/service/registry/past.go", "\tr.noteEnd(c, how)\n", "\tif how != Released {\n\t\tr.noteEnd(c, how)\n\t}\n",
		}},
	},
	{
		Name: "last-hold-forgotten-in-snapshots",
		Why:  "Snapshots have the rules without the last holds: a server that starts from one reports that a job has never run.",
		Edits: []Edit{{
			"internal/service/registry/expect/expect.go", "\t\t\trs = rs.With(*r)\n", "\t\t\tr.Last = Hold{}\n\t\t\trs = rs.With(*r)\n",
		}},
	},
	{
		Name: "unused-counts-as-held",
		Why:  "A hold that its client gave back unused counts as a run of the job.",
		Edits: []Edit{{
			"internal/service/registry/registry.go", "\t\tr.expected = before // nobody has used the name\n", "\t\t_ = before\n",
		}},
	},
}

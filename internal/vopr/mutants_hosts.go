package vopr

// hostMutants are mistakes in the hosts of the algorithms, in the homes of their clients, and
// in the lines of these.
var hostMutants = []Mutant{
	{
		Name: "host-open-without-barrier",
		Why:  "A member asks for new names without waiting for RESUMED of all.",
		Live: true,
		Edits: []Edit{{
			"algorithm/view/member.go", "m.Said && len(m.Resumed) == len(m.Members)-1 ||", "m.Said ||",
		}},
	},
	{
		Name: "host-resumed-before-grants",
		Why:  "RESUMED is said when what is held was asked for, not when it was granted.",
		Live: true,
		Edits: []Edit{{
			"algorithm/view/member.go", "(m.Left == 0 || m.flaw.ResumesEarly)", "(m.Left >= 0 || m.flaw.ResumesEarly)",
		}},
	},
	{
		Name: "host-holds-not-entered-again",
		Why:  "What is held is not entered again.",
		Live: true,
		Edits: []Edit{{
			"algorithm/view/member.go", "!n.Held || m.flaw.ForgetsHolds", "n.Held || !n.Held",
		}},
	},
	{
		Name: "host-machines-kept",
		Why:  "Machines outlive a START.",
		Live: true,
		Edits: []Edit{{
			"service/host/instance.go", "in.epoch, in.begun, in.machine, in.timers = h.member.Epoch, false, nil, in.timers[:0]", "in.epoch, in.begun = h.member.Epoch, false",
		}},
	},
	{
		Name: "host-taken-twice",
		Why:  "A frame that is sent again is taken again.",
		Live: true,
		Edits: []Edit{{
			"service/host/link.go", "		if number <= *got {\n			continue\n		}\n		if number != *got+1 {", "		if number > *got+1 {",
		}},
	},
	{
		Name: "host-fence-without-epoch",
		Why:  "A fence is that of the machine alone.",
		Live: true,
		Edits: []Edit{{
			"service/host/instance.go", "h.member.Epoch<<fenceBits|uint64(f)", "uint64(f)",
		}},
	},
	{
		Name: "host-more-than-the-seat-has",
		Why:  "A client is promised its own TTL, whatever the seat was given.",
		Live: true,
		Edits: []Edit{{
			"service/host/home.go", "given := min(h.span(s.TTL), remaining)", "given := s.TTL + 0*remaining",
		}},
	},
	{
		Name: "host-takes-while-it-hands-over",
		Why:  "A home that hands over takes a release: the heir has the hold, and nobody gives it up.",
		Live: true,
		Edits: []Edit{{
			"service/host/home.go", "	case h.still():\n		h.hold(", "	case h.still() && c.Op != registry.OpRelease:\n		h.hold(",
		}},
	},
	{
		Name: "home-beyond-its-lease",
		Why:  "A client takes what its home promises for as long as its own TTL.",
		Live: true,
		Edits: []Edit{{
			"internal/line/reply.go", "until := c.first + rep.GetRemainingNs() - Margin(s.span)", "until := c.first + max(rep.GetRemainingNs(), s.line.ttl) - Margin(s.span)",
		}},
	},
	{
		Name: "waits-for-a-home",
		Why:  "A call waits for a home though no server takes part any more.",
		Live: true,
		Edits: []Edit{{
			"internal/line/stream.go", "\t\t\tl.emit(Output{Action: homeless})\n", "",
		}},
	},
}

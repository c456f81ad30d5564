package mutants

// hostMutants are mistakes in the hosts of the algorithms, in homes, and in the lines of their
// clients.
var hostMutants = []Mutant{
	{
		Name: "host-open-without-barrier",
		Why:  "A member asks for new names without waiting for RESUMED of all.",
		Live: true,
		Edits: []Edit{{
			"algorithm/view/member.go", "m.Said && len(m.Resumed) == len(m.Members)-1 {", "m.Said {",
		}},
	},
	{
		Name: "host-resumed-before-grants",
		Why:  "RESUMED is said when what is held was asked for, not when it was granted.",
		Live: true,
		Edits: []Edit{{
			"algorithm/view/member.go", "!m.Said && m.Left == 0", "!m.Said && m.Left >= 0",
		}},
	},
	{
		Name: "host-holds-not-entered-again",
		Why:  "What is held is not entered again.",
		Live: true,
		Edits: []Edit{{
			"algorithm/view/member.go", "if !n.Held {", "if n.Held || !n.Held {",
		}},
	},
	{
		Name: "host-machines-kept",
		Why:  "Machines outlive a START.",
		Live: true,
		Edits: []Edit{{
			"internal/service/host/machines.go", "in.epoch, in.begun, in.machine, in.timers = m.member.Epoch, false, nil, in.timers[:0]", "in.epoch, in.begun = m.member.Epoch, false",
		}},
	},
	{
		Name: "host-taken-twice",
		Why:  "A frame that is sent again is taken again.",
		Live: true,
		Edits: []Edit{{
			"internal/service/host/link.go", "		if number <= *got {\n			continue\n		}\n		if number != *got+1 {", "		if number > *got+1 {",
		}},
	},
	{
		Name: "host-fence-without-epoch",
		Why:  "A fence is that of the machine alone.",
		Live: true,
		Edits: []Edit{{
			"internal/service/host/machines.go", "m.member.Epoch<<fenceBits|uint64(f)", "uint64(f)",
		}},
	},
	{
		Name: "host-more-than-the-seat-has",
		Why:  "A client is promised its own TTL, whatever the seat was given.",
		Live: true,
		Edits: []Edit{{
			"internal/service/host/home.go", "given := min(h.span(s.TTL), remaining)", "given := s.TTL + 0*remaining",
		}},
	},
	{
		Name: "host-takes-while-it-hands-over",
		Why:  "A home that hands over takes a release: the heir has the hold, and nobody gives it up.",
		Live: true,
		Edits: []Edit{{
			"internal/service/host/home.go", "	case h.frozen:\n		h.hold(", "	case h.frozen && c.Op != registry.OpRelease:\n		h.hold(",
		}},
	},
	{
		Name: "host-old-frames",
		Why:  "Frames of earlier epochs are taken.",
		Live: true,
		Edits: []Edit{{
			"algorithm/view/member.go", "m.State != Out && epoch == m.Epoch", "m.State != Out && epoch <= m.Epoch",
		}},
	},
	{
		Name: "host-newer-frames-dropped",
		Why:  "Frames of later epochs are dropped, not kept.",
		Live: true,
		Edits: []Edit{{
			"internal/service/host/receive.go", "\t\treturn l.keep(&b)", "\t\treturn nil",
		}},
	},
	{
		Name: "host-not-sent-again",
		Why:  "What was not acknowledged is not sent again on the next lane.",
		Live: true,
		Edits: []Edit{{
			"internal/service/host/link.go", "l.up, l.out = up, l.skip", "l.up = up",
		}},
	},
	{
		Name: "host-base-of-zero",
		Why:  "Machines that are made after a drop begin at zero.",
		Live: true,
		Edits: []Edit{{
			"internal/service/host/prefix.go", "if s.base == (process.Base{}) {", "if s.base == s.base {",
		}},
	},
	{
		Name: "host-token-forgotten",
		Why:  "Any machine is dropped when nothing is wanted of it, also one with a token.",
		Live: true,
		Edits: []Edit{{
			"internal/service/host/machines.go", "if idler, ok := in.machine.(process.Idler); !ok || !idler.Idle() {", "if idler, ok := in.machine.(process.Idler); ok && !idler.Idle() {",
		}},
	},
	{
		Name: "host-unwanted-grant-kept",
		Why:  "A grant that nobody wants any more is not given back.",
		Live: true,
		Edits: []Edit{{
			"algorithm/view/member.go", "\tn.Phase = Idle\n\treturn false, Release\n}\n\n// Leave", "\tn.Phase = Idle\n\treturn false, Nothing\n}\n\n// Leave",
		}},
	},
	{
		Name: "host-quiet-while-held",
		Why:  "Quiet is said while something is held.",
		Live: true,
		Edits: []Edit{{
			"algorithm/view/member.go", "return !n.Held && n.Phase == Idle", "return n.Held || n.Phase == Idle",
		}},
	},
	{
		Name: "host-fed-while-draining",
		Why:  "Names under a guard that drains are asked for and granted.",
		Live: true,
		Edits: []Edit{{
			"algorithm/view/member.go", "cancels && (draining || !n.Wanted)", "cancels && !n.Wanted",
		}, {
			"algorithm/view/member.go", "!m.Lapsed && !draining:", "!m.Lapsed:",
		}, {
			"algorithm/view/member.go", "n.Wanted && !draining && !m.Lapsed", "n.Wanted && !m.Lapsed",
		}},
	},
	{
		Name: "host-two-requests",
		Why:  "A second request is made while the first waits.",
		Live: true,
		Edits: []Edit{{
			"algorithm/view/member.go", "case n.Phase == Idle && n.Wanted && !n.Held &&", "case n.Phase != Inside && n.Wanted && !n.Held &&",
		}},
	},
	{
		Name: "host-left-while-held",
		Why:  "A server that stops closes its seat while a name is held.",
		Live: true,
		Edits: []Edit{{
			"internal/service/host/leave.go", "case !held && (!waits || d.leaving == leaves):", "case !waits || d.leaving == leaves:",
		}},
	},
	{
		Name: "home-answers-at-once",
		Why:  "A client is promised what is left of the seat's lease, whether or not the leader still knows the seat.",
		Live: true,
		Edits: []Edit{{
			"internal/service/host/home.go", "h.leaseClock(), h.seat.sequence})", "h.leaseClock(), h.seat.sequence})\n\tif h.now < h.seat.until {\n\t\th.promise(1<<62, h.seat.until+mu(h.cfg.lease())-h.now)\n\t}",
		}},
	},
	{
		Name: "heir-closes-early",
		Why:  "A member that has set a home aside closes its seat before it knows whether it is the heir.",
		Live: true,
		Edits: []Edit{{
			"internal/service/host/leave.go", "	case d.asides.inherits():\n", "",
		}, {
			"internal/service/host/member.go", "&& !h.asides.inherits()", "",
		}},
	},
	{
		Name: "adopter-ignores-promises",
		Why:  "A member says that it may be the heir of a home before its own seat outlasts what the clients were promised.",
		Live: true, Written: true,
		Edits: []Edit{{
			"internal/service/host/adopt.go", "a.whole && !a.said && a.after < command && remaining >= a.promise", "a.whole && !a.said && a.after < command+100 && remaining >= 0",
		}, {
			"internal/service/host/adopt.go", "a.whole, a.at, a.after = true, as.leaseClock(), as.seat.sequence", "a.whole, a.at, a.after = true, as.leaseClock(), as.seat.sequence\n\tas.adopt(a.after, 0)",
		}},
	},
	{
		Name: "home-kept-over-seats",
		Why:  "The sessions of clients, and what they hold, outlive the seat.",
		Live: true,
		Edits: []Edit{{
			"internal/service/host/home.go", "h.sessions, h.frozen, h.early = newSessions(h.cfg.OnHold), false, nil", "h.frozen, h.early = false, nil",
		}},
	},
	{
		Name: "home-ends-early",
		Why:  "A home ends a session when half of what it promised is over.",
		Live: true,
		Edits: []Edit{{
			"internal/service/host/home.go", "h.leases.Extend(a.session, a.at+given)", "h.leases.Extend(a.session, a.at+given/2)",
		}},
	},
	{
		Name: "home-without-a-seat",
		Why:  "A server that takes no part serves clients all the same.",
		Live: true,
		Edits: []Edit{{
			"internal/service/host/clients.go", "h.member.State != view.Out && (!h.member.Lapsed", "h.member.State <= view.Open && (!h.member.Lapsed",
		}, {
			"internal/service/host/home.go", "(h.member.State == view.Out || h.leaving != stays)", "(h.member.State > view.Open || h.leaving != stays)",
		}},
	},
	{
		Name: "home-beyond-its-lease",
		Why:  "A client takes what its home promises for as long as its own TTL.",
		Live: true,
		Edits: []Edit{{
			"internal/client/line/reply.go", "until := c.first + rep.GetRemainingNs() - Margin(s.span)", "until := c.first + max(rep.GetRemainingNs(), s.line.ttl) - Margin(s.span)",
		}},
	},
	{
		Name: "near-outlives-its-lease",
		Why:  "A program in the process of a server holds on when the lease of the seat is over.",
		Live: true,
		Edits: []Edit{{
			"internal/service/host/near.go", "ns.held > 0 && ns.now >= ns.seat.until", "ns.held < 0 && ns.now >= ns.seat.until",
		}},
	},
	{
		Name: "near-handed-over",
		Why:  "A server that stops hands its home over while a program in its process holds something.",
		Live: true,
		Edits: []Edit{{
			"internal/service/host/leave.go", "return in.near != nil || in.prefix", "return in.prefix",
		}},
	},
	{
		Name: "near-not-known-to-the-home",
		Why:  "What a program in the process of a server holds is given up when a client asks for it.",
		Live: true,
		Edits: []Edit{{
			"internal/service/host/home.go", "&& !held && in.near == nil {", "&& !held {",
		}},
	},
	{
		Name: "waits-for-a-home",
		Why:  "A call waits for a home though no server takes part any more.",
		Live: true,
		Edits: []Edit{{
			"internal/client/line/stream.go", "\t\t\tl.emit(Output{Action: noHome})\n", "",
		}},
	},
}

package mutants

// clientMutants are mistakes in the client, and in what servers assume about clients.
var clientMutants = []Mutant{
	{
		Name: "deadline-from-the-answer",
		Why:  "The client counts its deadline from the answer to a renewal, not from its transmission: it believes for longer than the servers wait.",
		Edits: []Edit{{
			"internal/client/line/reply.go", "until := c.first + rep.GetRemainingNs() - Margin(s.span)", "until := l.now + rep.GetRemainingNs() - Margin(s.span)",
		}},
	},
	{
		Name: "deadline-from-the-last-transmission",
		Why:  "The client counts its deadline from the last transmission of a renewal, though the answer may be to the first.",
		Edits: []Edit{{
			"internal/client/line/reply.go", "until := c.first + rep.GetRemainingNs() - Margin(s.span)", "until := c.last + rep.GetRemainingNs() - Margin(s.span)",
		}},
		Traces: true,
	},
	{
		Name: "deadline-without-margin",
		Why:  "The client believes as long as the servers wait: its clock may be slower than theirs.",
		Edits: []Edit{{
			"internal/client/line/reply.go", "until := c.first + rep.GetRemainingNs() - Margin(s.span)", "until := c.first + rep.GetRemainingNs()",
		}},
	},
	{
		Name: "open-sent-twice",
		Why:  "The client asks for a session over two streams under one secret: the second request revives the session after it has ended.",
		Edits: []Edit{{
			"internal/client/line/stream.go", "if !s.opens() {\n\t\t\tst.queue", "if s != nil {\n\t\t\tst.queue",
		}},
	},
	{
		Name: "numbered-anew",
		Why:  "The client gives a request a new number when it sends it again: it is carried out twice.",
		Edits: []Edit{{
			"internal/client/line/session.go", "\tc.last, s.sent = s.line.now, true\n", "\tif c.last != 0 && c.acquires() && c.sequence != 0 && !c.answered {\n\t\tdelete(s.pending, c.sequence)\n\t\tc.sequence = s.next\n\t\ts.next++\n\t\ts.pending[c.sequence] = c\n\t}\n\tc.last, s.sent = s.line.now, true\n",
		}},
	},
	{
		Name: "grant-of-a-caller-that-left",
		Why:  "The client keeps a grant whose caller has gone: nobody releases it.",
		Edits: []Edit{{
			"internal/client/line/reply.go", "\tcase c.withdrawn:\n\t\ts.giveBack(c.sequence)\n", "\tcase c.withdrawn:\n",
		}},
	},
	{
		Name: "revoked-and-let-in",
		Why:  "The client tells its caller a grant although the servers have asked for the hold back since: another may hold the lock by then.",
		Edits: []Edit{{
			"internal/client/line/reply.go", "\tcase c.asked:\n", "\tcase c.asked && c.sequence == 0:\n",
		}},
	},
	{
		Name: "unanswered-and-patient",
		Why:  "The client tries no other server while the one in use leaves requests unanswered.",
		Edits: []Edit{{
			"internal/client/line/watch.go", "last != 0 && !elsewhere && l.now-last", "last == 0 && !elsewhere && l.now-last",
		}},
	},
	{
		Name: "no-relay",
		Hole: "A client that reaches only followers",
		Why:  "A client that does not reach the leader never asks another server to relay.",
		Edits: []Edit{{
			"internal/client/line/search.go", "if !st.relayed && (late || leader == l.barred) {", "if st.relayed && (late || leader == l.barred) {",
		}},
	},
	{
		Name: "revocation-as-a-grant",
		Why:  "The client takes any late answer that has a fence for a grant, and gives it back: also the answer to a revocation.",
		Edits: []Edit{{
			"internal/client/line/reply.go", "case c == nil: // a duplicate\n", "case c == nil && rep.GetFence() != 0 && s.grants[rep.GetSequence()] == nil && !s.gone:\n\t\ts.giveBack(rep.GetSequence())\n\tcase c == nil: // a duplicate\n",
		}},
	},
	{
		Name: "ids-are-secrets",
		Hole: "Session ids were bearer secrets",
		Why:  "The id of a session, which every list shows, is the secret by which its client acts.",
		Edits: []Edit{{
			"internal/service/registry/command.go", "return SessionID(sum[:len(SessionID{})])", "_ = sum\n\treturn SessionID(secret)",
		}},
	},
	{
		Name: "anybody-with-the-secret",
		Hole: "Session ids were bearer secrets",
		Why:  "Whoever has the secret of a session acts in it, whatever name it has proven.",
		Edits: []Edit{{
			"internal/service/registry/command.go", "), principal...)", "), principal[:0]...)",
		}},
	},
	{
		Name: "end-not-told",
		Why:  "Nobody who watches is told that a lock or an election is free again.",
		Edits: []Edit{{
			"internal/service/registry/registry.go", "\t\tr.forget(res)\n\t\tfx.changed(res)\n", "\t\tr.forget(res)\n",
		}},
	},
	{
		Name: "gone-not-told",
		Why:  "Where everything is told again, what is gone is not: a watch shows it as held.",
		Edits: []Edit{{
			"internal/service/stream/watch.go", "changes.Gone = slices.Sorted(maps.Keys(w.gone))", "_ = slices.Sorted(maps.Keys(w.gone))",
		}},
	},
	{
		Name: "reset-not-told",
		Why:  "A watch that goes on at another server does not forget what it was told by the one before.",
		Edits: []Edit{{
			"internal/service/stream/watch.go", "&api.Changes{Reset_: w.after == \"\" && len(w.known) == 0}", "&api.Changes{Reset_: w.after == \"\" && len(w.known) == 0 && len(state.Members()) == 0}",
		}},
	},
	{
		Name: "nobody-owns",
		Hole: "Session ids were bearer secrets",
		Why:  "The owner of a session is not the caller that was proven.",
		Edits: []Edit{{
			"internal/service/stream/message.go", "registry.OpOpen, op.Open.GetTtlNs(), origin.Actor", "registry.OpOpen, op.Open.GetTtlNs(), op.Open.GetProgram()",
		}},
	},
}

// foundingMutants are mistakes of servers that start for the first time or lost their disk.
var foundingMutants = []Mutant{
	{
		Name: "founded-by-majority",
		Hole: "An emptied founder voted",
		Why:  "A majority of the founders is enough to found a cluster. The others begin blank, and the loss of one disk leaves no majority.",
		Edits: []Edit{{
			"internal/service/founding/founding.go", "old := s.Restored && record", "if s.ID == s.Founders[0] && 2*len(missing) < len(s.Founders) {\n\t\tmissing = nil\n\t}\n\told := s.Restored && record",
		}, {
			"internal/service/founding/founding.go", "return wait(missing, differ, Decision{Step: Found})", "if 2*len(missing) < len(s.Founders) {\n\t\tmissing = nil\n\t}\n\treturn wait(missing, differ, Decision{Step: Found})",
		}, {
			"internal/service/founding/founding.go", "first[i] = Founder{id, answers[id].UID}", "first[i] = Founder{id, max(answers[id].UID, 1)}",
		}},
	},
	{
		Name: "not-ready-is-new",
		Hole: "An emptied founder voted",
		Why:  "A server that has not read its disk counts as new: one that lost its data makes a second founding record, and waits forever.",
		Edits: []Edit{{
			"internal/service/founding/founding.go", "case a.Phase == New:\n", "case a.Phase == New || a.Phase == NotReady && a.UID != 0:\n",
		}},
	},
	{
		Name: "emptied-and-trusted",
		Hole: "An emptied founder voted",
		Why:  "A server that lost its data keeps its vote: it and one that lags elect a leader without what was acknowledged.",
		Edits: []Edit{{
			"internal/service/agreement/core.go", "if c.blank && !c.takenWhenBlank(m) {", "if c.blank && c.term == 0 && !c.takenWhenBlank(m) && m.GetTerm() == 0 {",
		}, {
			"internal/service/replica/admit.go", "case (voter || learner) && recorded && !same:\n\t\treturn r.change(raftpb.ConfChangeRemoveNode, peer)\n\tcase", "case",
		}},
	},
	{
		Name: "blank-counts",
		Hole: "A blank voter counted for a quorum",
		Why:  "A voter that lost its data answers heartbeats: a leader stays, and confirms reads and renewals, with nobody but servers that know nothing.",
		Edits: []Edit{{
			"internal/service/agreement/receive.go", "return m.GetReject()", "return m.GetReject() || m.GetType() == raftpb.MsgHeartbeat",
		}},
	},
	{
		Name: "record-not-saved-first",
		Hole: "An emptied founder voted",
		Why:  "A founder goes on, and tells others of its record, before that is on its disk: after a crash it does not know of a cluster that was founded on its word.",
		Edits: []Edit{{
			"internal/service/founding/machine.go", "m.writing = a.Record", "m.writing, m.disk.Record = a.Record, a.Record",
		}, {
			"internal/service/founding/machine.go", "case !m.loaded || m.writing != nil:", "case !m.loaded:",
		}},
	},
}

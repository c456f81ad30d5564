package mutants

// registryMutants are mistakes in how servers apply log entries.
var registryMutants = []Mutant{
	{
		Name: "no-deduplication",
		Why:  "Answers are not remembered, so that a request which comes again is carried out again: a release is told that there is nothing to release, a refused try may be granted.",
		Edits: []Edit{{
			"internal/service/registry/registry.go", "if i, found := s.find(c.Sequence); found {\n\t\t*result = st.recall(", "if i, found := s.find(c.Sequence); found && i < 0 {\n\t\t*result = st.recall(",
		}},
	},
	{
		Name: "queue-jumped",
		Why:  "Who comes last is served first.",
		Edits: []Edit{{
			"internal/service/registry/resource.go", "at := len(present.queue)\n", "at := len(present.queue)\n\tif c.priority == 0 {\n\t\tat = 0\n\t}\n",
		}},
	},
	{
		Name: "grant-untold",
		Why:  "Who waited is granted and not told: it holds, and nobody gets on.",
		Edits: []Edit{{
			"internal/service/registry/registry.go", "r.grant(next, fx)\n\t\tfx.granted(next)", "r.grant(next, fx)",
		}},
	},
	{
		Name: "floor-is-fence",
		Hole: "Fences of shared holds",
		Why:  "The floor of every grant is its fence: a store that has seen the newest reader refuses the older ones.",
		Edits: []Edit{{
			"internal/service/registry/registry.go", "OK, c.fence, c.resource.floor()", "OK, c.fence, c.fence",
		}},
	},
	{
		Name: "floor-forgets-revoked",
		Hole: "Fences of shared holds",
		Why:  "Holders that are asked to leave do not count for the floor: a store refuses one that has not heard of it yet.",
		Edits: []Edit{{
			"internal/service/registry/resource.go", "\treturn res.holders()[0].fence\n",
			"\tfence := uint64(0)\n\tfor _, h := range res.holders() {\n\t\tif fence = h.fence; !h.revoked {\n\t\t\tbreak\n\t\t}\n\t}\n\treturn fence\n",
		}},
	},
	{
		Name: "end-drops-at-once",
		Hole: "Ending the session of somebody else",
		Why:  "An operator who ends a session takes its holds away at once: the next one enters while the holder does not know.",
		Edits: []Edit{{
			"internal/service/registry/revoke.go", "r.ask(res, slices.Index(res.holders(), held), ByEnd, reason, actor, fx)\n\t}", "r.drop(held, Stale, Dropped)\n\t\tr.settle(res, fx)\n\t}",
		}},
	},
	{
		Name: "silent-for-good",
		Why:  "A session that was silent stays so in the log after its renewal: the next leader gives it what it had left then.",
		Edits: []Edit{{
			"internal/service/registry/session.go", "s.silent, s.remaining = false, 0",
			"_ = s.silent",
		}},
	},
	{
		Name: "limit-plus-one",
		Why:  "A semaphore has one place more than its limit.",
		Edits: []Edit{{
			"internal/service/registry/resource.go", "len(holders)+closed < int(limit)",
			"len(holders)+closed <= int(limit)",
		}},
	},
	{
		Name: "reader-beside-writer",
		Why:  "A shared hold is granted beside an exclusive one.",
		Edits: []Edit{{
			"internal/service/registry/resource.go", "return closed == 0 && holders[0].shared && len(holders) < MaxLimit",
			"return closed == 0 && len(holders) < MaxLimit",
		}},
	},
	{
		Name: "writer-overtaken",
		Why:  "A reader that comes while others read is granted although a writer waits.",
		Edits: []Edit{{
			"internal/service/registry/resource.go", "return len(res.queue()) == 0 && res.fits(t, closed)",
			"return (len(res.queue()) == 0 || t.shared) && res.fits(t, closed)",
		}},
	},
	{
		Name: "fence-repeated",
		Why:  "All grants have the same fence.",
		Edits: []Edit{{
			"internal/service/registry/registry.go", "if r.counter++; r.counter == counterTurn {",
			"if r.counter = max(r.counter, 1); r.counter == counterTurn {",
		}},
	},
	{
		Name: "fence-not-in-snapshot",
		Why:  "A snapshot does not have the newest fence: fences begin again on a server that is sent one.",
		Edits: []Edit{{
			"internal/service/registry/snapshot.go", "b = wire.AppendUint(b, v.counter)",
			"b = wire.AppendUint(b, 0)",
		}},
	},
	{
		Name: "answers-not-in-snapshot",
		Why:  "A snapshot does not have the answers that clients may still ask for: requests are carried out twice.",
		Edits: []Edit{{
			"internal/service/registry/snapshot.go", "s.answers = append(s.answers, a)\n\t\ts.addAnswer(&a)",
			"_ = a",
		}},
	},
	{
		Name: "answer-forgotten-too-soon",
		Why:  "The answer is forgotten that the client awaits: if it asks again, the request is carried out twice.",
		Edits: []Edit{{
			"internal/service/registry/session.go", "i, _ := s.find(low)\n",
			"i, _ := s.find(low + 1)\n",
		}},
	},
	{
		Name: "withdrawal-forgotten",
		Why:  "A request that is withdrawn before it arrives is carried out when it does: nobody knows of the hold.",
		Edits: []Edit{{
			"internal/service/registry/registry.go", "if _, found := s.find(hold); !found {",
			"if _, found := s.find(hold); !found && hold == 0 {",
		}},
	},
	{
		Name: "expiry-wakes-nobody",
		Why:  "When a session expires, those who wait behind its holds are not granted.",
		Edits: []Edit{{
			"internal/service/registry/session.go", "res.sweep()\n\t\tr.settle(res, fx)",
			"res.sweep()\n\t\tif len(res.queue()) == 0 {\n\t\t\tr.settle(res, fx)\n\t\t}",
		}},
	},
	{
		Name: "release-wakes-nobody",
		Why:  "When a hold is released, those who wait are not granted.",
		Edits: []Edit{{
			"internal/service/registry/registry.go", "r.settle(c.resource, fx)\n\tr.leave(s, fx)",
			"if len(c.resource.queue()) == 0 {\n\t\tr.settle(c.resource, fx)\n\t}\n\tr.leave(s, fx)",
		}},
	},
	{
		Name: "holds-outlive-sessions",
		Why:  "A session ends and its holds stay.",
		Edits: []Edit{{
			"internal/service/registry/session.go", "claims = s.sortedClaims(claims[:0])\n",
			"claims = s.sortedClaims(claims[:0])[:0]\n",
		}},
	},
	{
		Name: "ended-and-granted",
		Hole: "Ending the session of somebody else",
		Why:  "A session that an operator is ending acquires more.",
		Edits: []Edit{{
			"internal/service/registry/registry.go", "if s.leaving {\n\t\t\t*result = Result{Code: Revoked",
			"if s.leaving && s.low == 0 {\n\t\t\t*result = Result{Code: Revoked",
		}},
	},
	{
		Name: "transfer-unheeded",
		Why:  "The candidate that a leader names keeps its place in the queue: another leads next.",
		Edits: []Edit{{
			"internal/service/registry/resource.go", "slices.Insert(slices.Delete(present.queue, at, at+1), 0, heir)", "slices.Insert(slices.Delete(present.queue, at, at+1), at, heir)",
		}},
	},
	{
		Name: "transfer-overtaken",
		Why:  "A candidate of higher priority that comes later overtakes the one that the leader named.",
		Edits: []Edit{{
			"internal/service/registry/resource.go", "present.queue[at-1].priority < c.priority && !present.queue[at-1].named {", "present.queue[at-1].priority < c.priority {",
		}},
	},
	{
		Name: "transfer-refused",
		Why:  "A leader can hand over only to the first candidate of the queue: the others do not wait, it is told.",
		Edits: []Edit{{
			"internal/service/registry/revoke.go", "at := slices.IndexFunc(res.queue(), func", "at := slices.IndexFunc(res.queue()[:min(len(res.queue()), 1)], func",
		}},
	},
	{
		Name: "priority-ignored",
		Why:  "Candidates are elected in the order in which they came, whatever their priority.",
		Edits: []Edit{{
			"internal/service/registry/resource.go", "present.queue[at-1].priority < c.priority && !", "present.queue[at-1].priority < c.priority && c.patience < 0 && !",
		}},
	},
	{
		Name: "favourite-at-once",
		Why:  "A candidate that is patient takes the place of a leader as soon as that has led for long, though it has only just come.",
		Edits: []Edit{{
			"internal/service/registry/revoke.go", "now-max(first.at, leader.at) < first.patience", "now-leader.at < first.patience",
		}},
	},
	{
		Name: "release-remembered-as-drop",
		Why:  "A hold that its holder released is remembered as one that was taken away.",
		Edits: []Edit{{
			"internal/service/registry/registry.go", "r.drop(c, Stale, Released)", "r.drop(c, Stale, Dropped)",
		}},
	},
	{
		Name: "expiry-not-remembered",
		Why:  "How a hold ended is forgotten if its session expired: why shows the holder before it.",
		Edits: []Edit{{
			"internal/service/registry/session.go", "\t\tr.remember(c, how)\n", "\t\tif how != Expired {\n\t\t\tr.remember(c, how)\n\t\t}\n",
		}},
	},
	{
		Name: "asked-by-the-holder",
		Why:  "What is remembered of a hold names its holder as the one that asked it to leave.",
		Edits: []Edit{{
			"internal/service/registry/past.go", "e.asked = &asked{c.reason, c.by}", "e.asked = &asked{c.reason, c.session.owner}",
		}},
	},
	{
		Name: "past-in-the-wrong-order",
		Why:  "When as many ended holds are remembered as may be, the newest replaces the one before it, not the oldest.",
		Edits: []Edit{{
			"internal/service/registry/past.go", "rec.next = (rec.next + 1) % MaxPast", "_ = rec.next",
		}},
	},
	{
		Name: "digest-keeps-the-forgotten",
		Why:  "The digest of a state that was kept up to date has ends of holds that are forgotten; that of one which came with a snapshot has not. Servers stop that differ in nothing.",
		Hole: "Two releases in one cluster",
		Edits: []Edit{{
			"internal/service/registry/past.go", "\t\trec.sum -= oldest.hash()\n", "",
		}},
	},
}

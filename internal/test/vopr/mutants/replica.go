package mutants

// replicaMutants are mistakes in agreement, leadership and the measurement of time.
var replicaMutants = []Mutant{
	{
		Name: "no-fsync",
		Why:  "No save is synced before what it promises is said: a crash takes back votes and entries that others count on.",
		Edits: []Edit{{
			"internal/service/agreement/ready.go", "MustSync: raw.MustSync,", "MustSync: false,",
		}},
	},
	{
		Name: "settled-when-applied",
		Why:  "A change of the members is confirmed when the leader has applied it. If all crash now, the others know only the former members, one of which is gone.",
		Edits: []Edit{{
			"internal/service/agreement/settle.go", "settlement{after: math.MaxUint64, fresh: true}", "settlement{after: math.MaxUint64, done: true}",
		}},
	},
	{
		Name: "renewal-without-round",
		Why:  "A renewal is acknowledged on the word of the leader alone: one that was deposed and does not know it promises time that its successor does not grant.",
		Edits: []Edit{{
			"internal/service/replica/submit.go", "given := r.rounds.ask(asked{renewal: at})", "given := uint64(0)\n\t\tr.confirmed(asked{renewal: at})",
		}},
	},
	{
		Name:  "expiry-without-term",
		Why:   "A verdict of an earlier term counts, and a deposed leader goes on measuring and proposes what it found when it leads again: that ends sessions which were renewed with another leader meanwhile.",
		Edits: append([]Edit{expiryWithoutTerm}, verdictsKept...),
	},
	{
		Name: "nothing-of-level-1",
		Why:  "A server without state takes level 1 for that of the cluster: one of a later release, which lost its data, does not start.",
		Edits: []Edit{
			{"internal/service/replica/level.go", "if r.core.Blank() {", "if r.core.Blank() && r.cfg.ID == 0 {"},
			{"internal/service/replica/replica.go", "if core.Blank() {", "if core.Blank() && cfg.ID == 0 {"},
		},
	},
	{
		Name: "stale-snapshot",
		Why:  "A server that is sent a snapshot goes on from its index with the state that it had before, and grants what is held.",
		Edits: []Edit{{
			"internal/service/replica/apply.go", "r.reg, r.applied = restored, snapshot.GetMetadata().GetIndex()", "r.applied = max(r.applied, snapshot.GetMetadata().GetIndex()) + 0*uint64(restored.Counts().Locks)",
		}},
	},
	{
		Name: "read-without-round",
		Why:  "A leader answers queries on its own word: one that was deposed and does not know it shows holders that have left.",
		Edits: []Edit{{
			"internal/service/replica/replica.go", "r.rounds.ask(asked{read: id})", "r.confirmed(asked{read: id})",
		}},
	},
	{
		Name: "patience-by-wall-clock",
		Hole: "A clock a year ahead",
		Why:  "The wall clock of the leader says how long candidates have waited: one that is a year ahead delays those of the leaders after it by a year.",
		Edits: []Edit{{
			"internal/service/replica/apply.go", "Time: r.time(), Wall: wall,", "Time: wall, Wall: wall,",
		}, {
			"internal/service/replica/replica.go", "r.promote()", "r.promote(wall)",
		}, {
			"internal/service/replica/apply.go", "func (r *Replica) promote() {", "func (r *Replica) promote(wall int64) {",
		}, {
			"internal/service/replica/apply.go", "r.reg.Overtaken(r.time())", "r.reg.Overtaken(wall)",
		}},
	},
	{
		Name: "hung-leader-stays",
		Hole: "A hung disk",
		Why:  "A leader whose disk hangs sends heartbeats, applies nothing and stays: nobody is served, although a majority of the disks works.",
		Edits: []Edit{{
			"internal/service/replica/stall.go", "\t\tr.yield()\n", "\t\tr.yielded = 0\n",
		}},
	},
	{
		Name: "raise-without-learners",
		Hole: "Two releases in one cluster",
		Why:  "The level rises when all voters read the next one: a learner that does not stops, and never follows again.",
		Edits: []Edit{{
			"internal/service/replica/level.go", "if m.Standing != registry.Removed && !m.coming() {", "if m.Voter {",
		}},
	},
	{
		Name: "raise-without-the-absent",
		Hole: "Two releases in one cluster",
		Why:  "The level rises while a server is down: its operator may have gone back to the release before, which then does not start.",
		Edits: []Edit{{
			"internal/service/replica/level.go", "case said.Max == 0 || !r.live(m.ID):", "case said.Max == 0:",
		}},
	},
	{
		Name: "half-a-ttl-after-election",
		Why:  "A new leader gives sessions half of their TTL: it ends some that its predecessor renewed.",
		Edits: []Edit{{
			"internal/service/lease/lease.go", "deadline: now + s.TTL, renewals: s.Renewals, check: now + soon",
			"deadline: now + s.TTL/2, renewals: s.Renewals, check: now + soon",
		}},
	},
	{
		Name: "half-a-ttl",
		Why:  "A renewal through the log extends the session by half of its TTL only.",
		Edits: []Edit{{
			"internal/service/lease/lease.go", "deadline: now + s.TTL, renewals: s.Renewals, check: now + s.TTL/2",
			"deadline: now + s.TTL/2, renewals: s.Renewals, check: now + s.TTL/2",
		}},
	},
	{
		Name: "silent-renewed-by-round",
		Why:  "A session that the log has down as silent is renewed by a round, and the next leader does not know it.",
		Edits: []Edit{{
			"internal/service/lease/lease.go", "if s == nil || s.silent || s.expiring {",
			"if s == nil || s.expiring {",
		}},
	},
	{
		Name: "revoked-and-dropped",
		Why:  "A hold that is revoked is dropped at the next tick: its holder may not know yet.",
		Edits: []Edit{{
			"internal/service/lease/revoked.go", "case !known:\n\t\t\tv.until[id] = now + ttls[i]",
			"case !known:\n\t\t\tv.until[id] = now",
		}},
	},
	{
		Name: "revoked-and-kept",
		Why:  "A hold that is revoked stays for as long as its holder likes.",
		Edits: []Edit{{
			"internal/service/lease/revoked.go", "case until <= now:",
			"case until < 0:",
		}},
	},
	{
		Name: "routes-outlive-leadership",
		Why:  "A leader that is deposed keeps the list of requests on their way: when it leads again, it takes those that are sent again for old ones and does not answer.",
		Edits: []Edit{{
			"internal/service/replica/clients.go", "clear(r.routes)\n",
			"",
		}},
	},
	{
		Name: "no-state-limit",
		Hole: "Refused tries stored the holder",
		Why:  "The leader takes what makes the state larger than it may be.",
		Edits: []Edit{{
			"internal/service/replica/submit.go", "case !awaited && r.exceeds(c):", "case !awaited && r.exceeds(c) && c.Op == registry.OpUpdate:",
		}},
	},
	{
		Name: "limit-when-applied",
		Hole: "Refused tries stored the holder",
		Why:  "Each server checks its own limit when it applies an entry, not the leader before it proposes: they come to different states.",
		Edits: []Edit{{
			"internal/service/replica/submit.go", "case !awaited && r.exceeds(c):", "case !awaited && r.exceeds(c) && c.Op == registry.OpUpdate:",
		}, {
			"internal/service/replica/apply.go", "\tr.reg.Apply(entry.GetTerm(), batch, &r.fx)\n", "\tbatch.Commands = slices.DeleteFunc(batch.Commands, func(c registry.Command) bool {\n\t\treturn c.Op == registry.OpAcquire && r.reg.Size() > r.cfg.StateLimit\n\t})\n\tr.reg.Apply(entry.GetTerm(), batch, &r.fx)\n",
		}},
	},
	{
		Name: "limit-for-releases",
		Hole: "Refused tries stored the holder",
		Why:  "Where the state is as large as it may be, releases are refused as well: nothing makes room.",
		Edits: []Edit{{
			"internal/service/replica/submit.go", "\tcase registry.OpAcquire:\n\t\treturn !r.reg.Carried(c.Session, c.Sequence)\n\tcase registry.OpUpdate:", "\tcase registry.OpRelease:\n\t\treturn true\n\tcase registry.OpAcquire:\n\t\treturn !r.reg.Carried(c.Session, c.Sequence)\n\tcase registry.OpUpdate:",
		}},
	},
	{
		Name: "hand-over-to-nobody",
		Why:  "A server that is asked to hand over goes on to lead.",
		Edits: []Edit{{
			"internal/service/replica/admit.go", "\tif best, _ := r.successor(status); best != 0 {\n\t\t_ = r.core.TransferLeader(best)", "\tif best, _ := r.successor(status); best != 0 && r.lowering {\n\t\t_ = r.core.TransferLeader(best)",
		}},
	},
	{
		Name: "one-lane",
		Hole: "Floods",
		Why:  "Releases wait behind the acquires of a flood.",
		Edits: []Edit{{
			"internal/service/replica/scheduler.go", "\t\treturn !unanswered\n", "\t\treturn false\n",
		}},
	},
	{
		Name: "first-come-first-served",
		Hole: "Floods",
		Why:  "A session whose turn it is puts all that it has waiting into the log: others wait for a flood to pass.",
		Edits: []Edit{{
			"internal/service/replica/scheduler.go", "quantum        = 16 << 10", "quantum        = 16 << 20",
		}},
	},
	{
		Name: "sessions-take-turns",
		Hole: "Floods",
		Why:  "Sessions take turns, not principals: who opens more sessions gets more into the log.",
		Edits: []Edit{{
			"internal/service/replica/scheduler.go", "\tif principal == \"\" || c.Op.Unbound() {", "\tif len(principal) >= 0 || c.Op.Unbound() {",
		}},
	},
	// Each half of expiry-without-term is harmless alone. A leader proposes a verdict in the term
	// in which it decided it, or drops the verdict when it is deposed. Raft keeps the term of an
	// entry, no matter which server commits it. So the term in a verdict is always the term of its
	// entry, unless the verdict outlives its leader. A server that only stands for election is
	// already in its new term, so these mutants decide verdicts only as followers.
	{Name: "expiry-without-term-alone", Why: "Verdicts are forgotten with the leadership, so that the term is always right.", Edits: []Edit{expiryWithoutTerm}, Harmless: true},
	{Name: "verdicts-kept-alone", Why: "The term in the verdict makes it void.", Edits: verdictsKept, Harmless: true},
}

var (
	expiryWithoutTerm = Edit{
		"internal/service/registry/registry.go", "case OpExpire:\n\t\tif c.Term == term {", "case OpExpire:\n\t\tif c.Term <= term {",
	}
	verdictsKept = []Edit{{
		"internal/service/replica/replica.go", "r.verdicts, r.inflight, r.proposed = nil, 0, 0\n\tr.leases = lease.NewTable()", "r.inflight, r.proposed = 0, 0",
	}, {
		"internal/service/replica/replica.go", "if !r.ready {\n\t\treturn\n\t}\n\texpired, silent", "if !r.ready {\n\t\tif r.role == agreement.Follower {\n\t\t\tlate, _ := r.leases.Due(r.leaseClock())\n\t\t\tr.judge(registry.OpExpire, late)\n\t\t}\n\t\treturn\n\t}\n\texpired, silent",
	}, {
		"internal/service/replica/apply.go", "r.ready = true\n\tnow :=", "r.ready, r.leases = true, lease.NewTable()\n\tnow :=",
	}, {
		"internal/service/replica/apply.go", "internal/service/registry\"\n", "internal/service/lease\"\n\t\"github.com/conclave-io/conclave/internal/service/registry\"\n",
	}}
)

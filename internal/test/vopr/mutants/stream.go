package mutants

// streamMutants are mistakes in the decisions about client streams.
var streamMutants = []Mutant{
	{
		Name: "derived-twice",
		Why:  "The leader takes the id of a session, which another server has derived, for a secret: over a relay a client has other sessions than over its own way to the leader.",
		Edits: []Edit{{
			"internal/service/stream/caller.go", "if c.Vouched {", "if c.Vouched && c.Via == \"\" {",
		}},
	},
	{
		Name: "relayed-under-ids",
		Why:  "A server that relays sends replies on as the leader gave them, under the ids of sessions: the client knows its sessions by their secrets, and takes none of them.",
		Edits: []Edit{{
			"internal/service/stream/relay.go", "if id := reply.GetSession(); len(id) == SecretSize {", "if id := reply.GetSession(); len(id) > SecretSize {",
		}},
	},
	{
		Name: "passed-on-twice",
		Why:  "A server passes on a stream that was passed on to it: two that take each other for the leader send it to and fro.",
		Edits: []Edit{{
			"internal/service/stream/relay.go", "case !a.Asked || a.Caller.Vouched ||", "case !a.Asked ||",
		}},
	},
	{
		Name: "answered-to-the-newest",
		Why:  "The replies to all sessions of a stream go back under the secret of the newest one.",
		Edits: []Edit{{
			"internal/service/stream/sessions.go", "s.ids[string(sent)], s.sent[id] = id, sent", "s.ids[string(sent)], s.sent[id] = id, sent\n\t\tfor other := range s.sent {\n\t\t\ts.sent[other] = sent\n\t\t}",
		}},
	},
	{
		Name: "one-frame-of-replies",
		Why:  "Of the replies that wait for a client, those are lost that do not fit into one frame, and the stream goes on.",
		Edits: []Edit{{
			"internal/service/stream/outbox.go", "o.outcomes = o.outcomes[n:]", "o.outcomes = nil",
		}},
	},
	{
		Name: "deposed-and-attached",
		Why:  "A server that ceases to lead keeps the streams of its clients, and answers nothing.",
		Edits: []Edit{{
			"internal/service/stream/outbox.go", "return frame, o.deposed || o.farewell != nil ||", "return frame, o.farewell != nil ||",
		}},
	},
	{
		Name: "relayed-to-the-former-leader",
		Why:  "A server goes on passing a stream to a server that leads no more.",
		Edits: []Edit{{
			"internal/service/stream/relay.go", "if leader != r.leader || !r.welcomed", "if !r.welcomed",
		}},
	},
	{
		Name: "one-turn-each",
		Why:  "A connection that has had its turn, and asks for more, never has another.",
		Edits: []Edit{{
			"internal/service/queue/queue.go", "\t\tif l.count > 0 {\n\t\t\tq.lines = append", "\t\tif l.count < 0 {\n\t\t\tq.lines = append",
		}},
	},
	{
		Name: "not-cut-off",
		Why:  "Of a client that does not take its replies too many are dropped, and the stream goes on.",
		Edits: []Edit{{
			"internal/service/stream/outbox.go", "\t\to.outcomes, o.refusals = nil, nil\n", "\t\to.outcomes, o.refusals, o.cut = nil, nil, false\n",
		}},
	},
}

// sendingMutants are mistakes in the decisions about what is sent to other servers.
var sendingMutants = []Mutant{
	{
		Name: "queued-for-the-next",
		Why:  "What waited on a connection that broke is sent on the next one, to whoever the peer is by then.",
		Edits: []Edit{{
			"internal/service/peering/outgoing.go", "\tclear(o.messages)\n\tclear(o.notes)\n\to.messages, o.first, o.notes = o.messages[:0], 0, o.notes[:0]", "\tclear(o.notes)\n\to.notes = o.notes[:0]",
		}},
	},
	{
		Name: "room-not-given-back",
		Why:  "The bytes of a message that has left still count: once as many have passed as may wait, nothing is sent any more.",
		Edits: []Edit{{
			"internal/service/peering/outgoing.go", "\t\to.bytes -= next.size\n", "",
		}},
	},
	{
		Name: "queue-without-end",
		Why:  "Any number of messages waits for a peer that takes none.",
		Edits: []Edit{{
			"internal/service/peering/outgoing.go", "n >= o.bounds.Messages ||", "",
		}},
	},
	{
		Name: "newest-first",
		Why:  "Of the messages that wait the newest leaves first.",
		Edits: []Edit{{
			"internal/service/peering/outgoing.go", "\t\tnext := &o.messages[o.first]\n", "\t\tlast := len(o.messages) - 1\n\t\to.messages[o.first], o.messages[last] = o.messages[last], o.messages[o.first]\n\t\tnext := &o.messages[o.first]\n",
		}},
	},
	{
		Name: "loss-untold",
		Why:  "Nobody is told of messages that a full queue drops.",
		Edits: []Edit{{
			"internal/service/peering/outgoing.go", "\t\to.lost = true\n\t\treturn false", "\t\treturn false",
		}},
	},
	{
		Name: "one-loss-told",
		Why:  "After the first loss none is reported.",
		Edits: []Edit{{
			"internal/service/peering/outgoing.go", "o.told && wait > 0", "o.told",
		}},
	},
	{
		Name: "sent-is-taken",
		Why:  "A snapshot counts as taken over by the peer once the connection for it has ended.",
		Edits: []Edit{{
			"internal/service/peering/snapshot.go", "return s.taken", "return true",
		}},
	},
	{
		Name: "one-snapshot-only",
		Why:  "The turn of a snapshot does not end: no other is sent to that peer.",
		Edits: []Edit{{
			"internal/service/peering/snapshot.go", "\tvar none M\n\ts.sent = none\n\treturn s.taken", "\treturn s.taken",
		}},
	},
	{
		Name: "whole-too-soon",
		Why:  "A snapshot of which half has arrived is taken for whole.",
		Edits: []Edit{{
			"internal/service/peering/snapshot.go", "len(a.data) >= a.size", "len(a.data) >= (a.size+1)/2",
		}},
	},
}

// peeringMutants are mistakes in the decisions about connections between servers.
var peeringMutants = []Mutant{
	{
		Name: "two-directories-with-one-id",
		Why:  "A server that comes back with another directory is connected while its old connections live.",
		Edits: []Edit{{
			"internal/service/peering/peer.go", "return p.live > 0 && p.known.Differs(h)", "return p.live < 0 && p.known.Differs(h)",
		}},
	},
	{
		Name: "links-that-left-count",
		Why:  "A connection that has ended still counts: what a server was before it lost its data is never gone, and it is not let in again.",
		Edits: []Edit{{
			"internal/service/peering/peer.go", "\tp.inbound[ln] = none\n\tp.live--", "\tp.inbound[ln] = none",
		}},
	},
	{
		Name: "duplicate-at-once",
		Why:  "A server that comes back with another directory is refused for good if anything was ever heard of the old one: it stops.",
		Edits: []Edit{{
			"internal/service/peering/admit.go", "if c.looked && heard != c.heard {", "if heard != c.heard {",
		}},
	},
	{
		Name: "two-processes-with-one-directory",
		Why:  "A second process with a copy of the data of a server takes its place, and the two take turns.",
		Edits: []Edit{{
			"internal/service/peering/hello.go", " || h.sharesData(other)", "",
		}},
	},
	{
		Name: "the-older-leaves",
		Why:  "Of two processes with the same data the one stops that started earlier: a server that was cut off, and not its copy.",
		Edits: []Edit{{
			"internal/service/peering/copy.go", "return d > 0", "return d < 0",
		}},
	},
	{
		Name: "refused-by-a-server-that-starts",
		Why:  "A server that has not read its log refuses members for good that it does not know yet, and levels: they do not try again for seconds, not even when it connects to them.",
		Edits: append([]Edit{{
			"internal/service/peering/admit.go", "Redial: p.refused != 0", "Redial: false",
		}}, refusedAtTheStart...),
	},
	{
		Name:     "refused-by-a-server-that-starts-alone",
		Why:      "When it has read its log, it connects to those that it refused, and they try again at once.",
		Edits:    refusedAtTheStart,
		Harmless: true,
	},
}

var refusedAtTheStart = []Edit{{
	"internal/service/peering/refusal.go", "\t\tif !d.Ready {\n\t\t\treturn d.starting()\n\t\t}\n\t\treturn d.Stranger(h)", "\t\treturn d.Stranger(h)",
}, {
	"internal/service/peering/refusal.go", "\t\t\tif !d.Ready {\n\t\t\t\treturn d.starting()\n\t\t\t}\n\t\t\treturn Refuse(LevelUnknown", "\t\t\treturn Refuse(LevelUnknown",
}}

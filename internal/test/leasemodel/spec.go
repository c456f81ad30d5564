package leasemodel

import "github.com/conclave-io/conclave/process"

// Rule is a rule of the model, in the order of Spec.Rules.
type Rule = process.Rule

const (
	ruleWrite Rule = iota + 1
	ruleFound
	ruleBlank
	ruleEmpty
	ruleElect
	ruleReplicate
	ruleLead
	ruleAnswer
	ruleRejoin
	ruleArrive
	ruleBegin
	ruleConfirm
	ruleExpire
	ruleSilence
	ruleKept
	ruleDrop
	ruleRevoke
	ruleSend
	ruleReceive
	ruleEnter
	ruleAcquire
	ruleGrant
	ruleDie
	ruleTick
)

// Spec is the model. Its one machine is the whole world; see check.World.
var Spec = &process.Spec{
	Name: "lease-model", Title: "Sessions and leases of the service", Family: process.Agreement,
	Timers: []string{"step"},
	Rules: []process.RuleSpec{
		{Name: "write", Text: "a server writes the founding record to its disk"},
		{Name: "found", Text: "a server founds, and votes from now on"},
		{Name: "blank", Text: "a server learns from the founding record that it lost its data, and waits to be taken back"},
		{Name: "empty", Text: "a server loses its disk, with its term, its vote and its log"},
		{Name: "elect", Text: "a server becomes the leader of a new term, by its own vote and that of a server whose log is not newer"},
		{Name: "replicate", Text: "another server takes over the log of a leader, which commits it"},
		{Name: "lead", Text: "a leader applies the first entry of its term, and starts the leases"},
		{Name: "answer", Text: "another server answers the round of a leader"},
		{Name: "rejoin", Text: "a leader takes a blank server back"},
		{Name: "arrive", Text: "a renewal reaches a leader"},
		{Name: "begin", Text: "a leader begins a round for the renewals that wait"},
		{Name: "confirm", Text: "a leader answers the renewals of a round that a majority has answered"},
		{Name: "expire", Text: "a leader proposes the expiry of a session whose time is over"},
		{Name: "silence", Text: "a leader proposes to put on record that a session is silent, and what it has left"},
		{Name: "kept", Text: "a leader proposes a verdict that it kept from an earlier term"},
		{Name: "drop", Text: "a leader proposes to drop a hold that was revoked a TTL ago"},
		{Name: "revoke", Text: "an operator asks the holder to leave"},
		{Name: "send", Text: "a client sends a renewal, or opens its session"},
		{Name: "receive", Text: "a client takes the answer to its renewal"},
		{Name: "enter", Text: "a client takes a grant"},
		{Name: "acquire", Text: "a client asks for the lock"},
		{Name: "grant", Text: "a leader tells a client that it holds the lock"},
		{Name: "die", Text: "the first client dies"},
		{Name: "tick", Text: "time goes on"},
	},
	Options: []process.Option{
		{Name: "clients", Default: "2", Min: 1, Max: maxClients, Text: "how many clients there are"},
		{Name: "ttl", Default: "3", Min: 2, Max: 12, Text: "the TTL of a session, in ticks"},
		{Name: "margin", Default: "1", Min: 0, Max: 4, Text: "by how many ticks clients stop earlier"},
		{Name: "drift", Default: "1", Min: 0, Max: 1, Text: "by how many ticks a client's clock may be late"},
		{Name: "terms", Default: "2", Min: 1, Max: 9, Text: "how many leaders there are, one after the other"},
		{Name: "empties", Default: "0", Min: 0, Max: 1, Text: "how many disks are emptied"},
		{Name: "revocations", Default: "0", Min: 0, Max: 2, Text: "how often a holder is asked to leave"},
		{Name: "inflight", Default: "1", Min: 1, Max: 4, Text: "how many entries a leader has in flight"},
		{Name: "founded", Default: "no", Values: []string{"no", "yes"}, Text: "whether the cluster is founded at the start"},
		{Name: "bound", Default: "no", Values: []string{"no", "yes"}, Text: "whether leaders do at once what is due, and the first client dies"},
		{Name: "coarse", Default: "no", Values: []string{"no", "yes"}, Text: "whether what clients and leaders tell each other arrives at once or never"},
		{Name: "symmetric", Default: "no", Values: []string{"no", "yes"}, Text: "whether states that differ in the names of servers and clients are one"},
		{Name: "flaw", Default: "none", Values: flawNames(), Text: "the mistake in it"},
	},
	New: newWorld,
}

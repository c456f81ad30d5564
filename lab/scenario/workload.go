package scenario

import (
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/conclave-io/conclave/internal/kit/spelling"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

var regimes = []string{"listed", "idle", "saturated", "loaded"}

func (r *reader) workload(n *yaml.Node) {
	w := &r.cfg.Workload
	r.mapping(n, "workload",
		field{"regime", func(n *yaml.Node) { w.Regime = r.regime(n) }},
		field{"clients", func(n *yaml.Node) { w.Clients = r.processes(n, "clients") }},
		field{"section", func(n *yaml.Node) { w.Section = r.delay(n, "section") }},
		field{"think", func(n *yaml.Node) { w.Think = r.delay(n, "think") }},
		field{"patience", func(n *yaml.Node) { w.Patience = r.time(n, "patience") }},
		field{"commands", r.commands},
	)
}

func (r *reader) regime(n *yaml.Node) sim.Regime {
	name := r.text(n, "regime")
	regime, ok := sim.RegimeByName(name)
	if !ok {
		r.complain(n, "unknown regime %q%s", shorten(name), Near(name, regimes))
	}
	return regime
}

func (r *reader) commands(n *yaml.Node) {
	for _, item := range r.items(n, "commands") {
		r.commandNodes = append(r.commandNodes, item)
		r.cfg.Workload.Commands = append(r.cfg.Workload.Commands, r.command(item))
		if r.err != nil {
			return
		}
	}
}

// verbs are the keys that name a command or a fault, in groups that take the same other
// keys.
var (
	ownVerbs   = []string{"cancel", "release", "campaign", "resign", "leave", "record"}
	peerVerbs  = []string{"suspect", "trust", "fail", "rejoin", "neighbor"}
	valueVerbs = []string{"propose", "load", "vote"}

	commandVerbs = slices.Concat([]string{"acquire"}, ownVerbs, peerVerbs, []string{"elected"}, valueVerbs)
)

// verb returns the key of a mapping that names its kind.
func (r *reader) verb(n *yaml.Node, what string, verbs []string) string {
	if n.Kind != yaml.MappingNode {
		r.complain(n, "%s: %s: must be a mapping such as {at: 3, %s: 2}", what, kind(n), verbs[0])
		return ""
	}
	found := ""
	for _, key := range keys(n) {
		switch {
		case !slices.Contains(verbs, key.Value):
		case found != "":
			r.complain(key, "%s is both %s and %s: must be one of them", what, found, key.Value)
		default:
			found = key.Value
		}
	}
	if found == "" {
		r.complainVerb(n, what, verbs)
	}
	return found
}

// complainVerb reports that no key names the kind, and suggests a similar one.
func (r *reader) complainVerb(n *yaml.Node, what string, verbs []string) {
	for _, key := range keys(n) {
		if near := spelling.Nearest(key.Value, verbs); near != "" && len(key.Value) > 2 { // short keys such as "at" are similar to too many
			r.complain(key, "%s has no key %q; did you mean %q?", what, key.Value, near)
			return
		}
	}
	r.complain(n, "%s does not say what happens: must have one of the keys %s", what, strings.Join(verbs, ", "))
}

// keys returns the keys of a mapping.
func keys(n *yaml.Node) []*yaml.Node {
	var keys []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		keys = append(keys, n.Content[i])
	}
	return keys
}

func (r *reader) command(n *yaml.Node) sim.Command {
	verb := r.verb(n, "a command", commandVerbs)
	m := sim.Command{Kind: process.KindByName(verb)}
	if verb == "vote" {
		m.Kind = process.Propose
	}
	fields := []field{{"at", func(n *yaml.Node) { m.At = r.time(n, "at") }}}
	required := []string{"at"}
	switch {
	case verb == "acquire":
		fields = append(fields, r.ofProcess(verb, &m.Process), field{"hold", func(n *yaml.Node) { m.Hold = r.hold(n) }})
	case slices.Contains(ownVerbs, verb):
		fields = append(fields, r.ofProcess(verb, &m.Process))
	case slices.Contains(peerVerbs, verb):
		fields = append(fields, r.ofProcess(verb, &m.Peer), r.ofProcess("to", &m.Process))
		required = append(required, "to")
	case verb == "elected":
		fields = append(fields, r.ofProcess(verb, &m.Peer), r.ofProcess("to", &m.Process),
			field{"round", func(n *yaml.Node) { m.Term = process.MakeTerm(uint64(r.number(n, "round", 1, maxRound)), m.Peer) }})
		required = append(required, "to", "round")
	case verb == "vote":
		fields = append(fields, r.ofProcess("by", &m.Process), field{verb, func(n *yaml.Node) { m.Value = r.vote(n) }})
		required = append(required, "by")
	case verb != "":
		fields = append(fields, r.ofProcess("by", &m.Process),
			field{verb, func(n *yaml.Node) { m.Value = int64(r.number(n, verb, math.MinInt64, math.MaxInt64)) }})
		required = append(required, "by")
	}
	r.verbMapping(n, "a command to "+verb, required, fields)
	return m
}

// vote is yes or no.
func (r *reader) vote(n *yaml.Node) int64 {
	vote := slices.Index(process.VoteNames, r.scalar(n))
	if vote < 0 {
		r.complain(n, "vote: %s: must be yes or no", kind(n))
	}
	return int64(vote)
}

// maxRound is the largest election round.
const maxRound = 1<<40 - 1

// verbMapping reads a mapping in which some keys must be present.
func (r *reader) verbMapping(n *yaml.Node, what string, required []string, fields []field) {
	if r.err == nil {
		r.mapping(n, what, fields...)
	}
	for _, name := range required {
		if r.err == nil && !hasKey(n, name) {
			r.complain(n, "%s: missing key %q", what, name)
		}
	}
}

func hasKey(n *yaml.Node, name string) bool {
	return slices.ContainsFunc(keys(n), func(key *yaml.Node) bool { return key.Value == name })
}

func (r *reader) ofProcess(key string, p *process.ID) field {
	return field{key, func(n *yaml.Node) { *p = r.process(n, key) }}
}

// hold is how long a client stays inside: negative until it is told to leave.
func (r *reader) hold(n *yaml.Node) process.Duration {
	if r.scalar(n) == "release" {
		return -1
	}
	t, ok := ParseTime(r.scalar(n), r.cfg.Process.D())
	if !ok || t == 0 {
		r.complain(n, "hold: %s: must be a time above 0 such as 3, 2.5D or 5ms, or release", kind(n))
	}
	return t
}

package dijkstra

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// privileged is the rule of the ring with K numbers; left is the predecessor's number.
func privileged(bottom bool, left, s int64) bool { return (left == s) == bottom }

// moved returns the number after a move.
func moved(bottom bool, left, s, k int64) int64 {
	if bottom {
		return (s + 1) % k
	}
	return left
}

// states are all values of S and of the cache. A fault does not change what the client
// does.
func states(self process.ID, c *process.Config) []process.Machine {
	var all []process.Machine
	for s := range K(c) {
		for cache := range K(c) {
			m := Flaw{}.New(self, c).(*machine)
			m.s, m.cache = s, cache
			all = append(all, m)
		}
	}
	return all
}

// messages are all values that may be in flight between neighbours.
func messages(from, to process.ID, c *process.Config) []process.Message {
	if c.Topology.Next(from, c.N) != to {
		return nil
	}
	var all []process.Message
	for s := range K(c) {
		all = append(all, process.Message{Type: val, From: from, To: to, Value: s})
	}
	return all
}

// wrong counts the privileges of all machines that copy, from the bottom on: each
// process, the messages that it sent (newest first), and the cache of its successor.
func wrong(g *process.Global) string {
	bottom := g.Config.Topology.Coordinator
	at := bottom
	value, privileges := int64(0), 0
	for first := true; first || at != bottom; first = false {
		m, ok := g.Machines[at].(*machine)
		if !ok || m.next == at {
			return "" // one is down, or alone
		}
		if !first {
			privileges += differ(value, m.s)
		}
		value = m.s
		for i := len(g.Messages) - 1; i >= 0; i-- {
			if msg := g.Messages[i]; msg.From == at && msg.To == m.next {
				privileges += differ(value, msg.Value)
				value = msg.Value
			}
		}
		if next, up := g.Machines[m.next].(*machine); up {
			privileges += differ(value, next.cache)
			value = next.cache
		}
		at = m.next
	}
	privileges += 1 - differ(value, g.Machines[bottom].(*machine).s)
	if privileges == 1 {
		return ""
	}
	return fmt.Sprintf("%d of the machines are privileged", privileges)
}

func differ(a, b int64) int {
	if a == b {
		return 0
	}
	return 1
}

// check refuses a single value: with it no process but the bottom would ever be
// privileged.
func check(c *process.Config) error {
	if k := K(c); k < 2 {
		return fmt.Errorf("dijkstra: values: %d: must be 0 or at least 2", k)
	}
	return nil
}

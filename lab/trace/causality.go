package trace

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Causality answers which records of a run happened before which others. A record happened before
// another if a chain leads from it to the other. Each link of the chain leads to the next record at
// the same process, or from the record that sent a message to the one that received it. Causality is
// a sink of records.
type Causality struct {
	records []Record
	indexes map[uint64]int        // the index of a record, by its number
	before  []int                 // for each record: the index of the previous one at its process, or -1
	last    map[process.Label]int // the index of the last record at a process
}

// NewCausality returns a Causality without records.
func NewCausality() *Causality {
	return &Causality{indexes: map[uint64]int{}, last: map[process.Label]int{}}
}

// Write adds the next record of a run. Events on the way of a message belong to no process.
func (c *Causality) Write(r *Record) error {
	if _, twice := c.indexes[r.ID]; twice {
		return fmt.Errorf("trace: two records have the number %d", r.ID)
	}
	index, previous := len(c.records), -1
	if !r.ofNetwork() {
		if at, known := c.last[r.Process]; known {
			previous = at
		}
		c.last[r.Process] = index
	}
	c.indexes[r.ID] = index
	c.records, c.before = append(c.records, *r), append(c.before, previous)
	return nil
}

// Record returns the record with a number, or nil.
func (c *Causality) Record(id uint64) *Record {
	if index, known := c.indexes[id]; known {
		return &c.records[index]
	}
	return nil
}

// Before reports whether one record happened before another.
func (c *Causality) Before(a, b uint64) bool { return a != b && c.Chain(a, b) != nil }

// Concurrent reports whether neither of two records happened before the other.
func (c *Causality) Concurrent(a, b uint64) bool {
	return a != b && c.Record(a) != nil && c.Record(b) != nil && !c.Before(a, b) && !c.Before(b, a)
}

// Past returns the numbers of all records that happened before a record, in increasing order.
func (c *Causality) Past(id uint64) []uint64 {
	end, known := c.indexes[id]
	if !known {
		return nil
	}
	next := c.walk(end, -1)
	var past []uint64
	for index := range end {
		if next[index] >= 0 {
			past = append(past, c.records[index].ID)
		}
	}
	return past
}

// Chain returns the numbers of a shortest chain from one record to another, or nil if there is none.
func (c *Causality) Chain(a, b uint64) []uint64 {
	from, known := c.indexes[a]
	to, alsoKnown := c.indexes[b]
	if !known || !alsoKnown || from > to {
		return nil
	}
	next := c.walk(to, from)
	if from != to && next[from] < 0 {
		return nil
	}
	chain := []uint64{a}
	for from != to {
		from = next[from]
		chain = append(chain, c.records[from].ID)
	}
	return chain
}

// walk searches backwards from a record, breadth first, until it reaches the wanted one. For each
// record that it reached it returns the next one on the way to the end, and -1 for all others. A
// record comes after all records that lead to it.
func (c *Causality) walk(end, wanted int) []int {
	next := slices.Repeat([]int{-1}, end+1)
	queue := []int{end}
	for len(queue) > 0 && queue[0] != wanted {
		index := queue[0]
		queue = queue[1:]
		for _, cause := range c.causes(index) {
			if next[cause] < 0 {
				next[cause] = index
				queue = append(queue, cause)
			}
		}
	}
	return next
}

// causes returns the indexes of the direct predecessors of a record.
func (c *Causality) causes(index int) []int {
	var causes []int
	if sender, known := c.indexes[c.records[index].Cause]; known && sender < index {
		causes = append(causes, sender)
	}
	if c.before[index] >= 0 {
		causes = append(causes, c.before[index])
	}
	return causes
}

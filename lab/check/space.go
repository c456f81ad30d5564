package check

import (
	"slices"
	"sync"

	"github.com/conclave-io/conclave/process"
)

// space gives numbers to the parts of states: local states, messages, and contents of
// links. Workers share it. Each keeps its own view (see worker) of what it has met, so
// the lock is taken only for what is new to it.
type space struct {
	cfg    *Config
	spec   *process.Spec
	config *process.Config
	layout layout
	books  books

	mu       sync.Mutex
	localIDs map[string]uint32
	locals   []*local
	prints   []print // of locals
	msgIDs   map[string]uint32
	messages []*message
	msgPrint []print
	chanIDs  map[chanKey]uint32
	channels []channel
	rules    [][]bool // by layer and rule: whether it was applied

	key []byte // scratch
}

// channel is the content of one link, as a list that shares its tail with others. On a
// FIFO link the tail is what was sent before the last message; on any other link it is
// the rest without the message with the largest number.
type channel struct {
	print
	last   uint32   // the message
	before uint32   // the channel without it, 0: the empty one
	length uint32   // number of messages
	takes  []taking // what may be delivered, and what remains then
}

// taking is the delivery of one message from a channel.
type taking struct{ message, rest uint32 }

// chanKey identifies a channel by its messages.
type chanKey struct{ before, last uint32 }

// room returns the element of a list with a number, for which it makes room first.
func room[T any](list *[]T, id uint32) *T {
	if missing := int(id) + 1 - len(*list); missing > 0 {
		*list = append(*list, make([]T, missing)...)
	}
	return &(*list)[id]
}

func newSpace(cfg *Config) *space {
	sp := &space{
		cfg: cfg, spec: cfg.Spec, config: &cfg.Process, layout: newLayout(cfg), books: newBooks(cfg),
		localIDs: map[string]uint32{}, msgIDs: map[string]uint32{}, chanIDs: map[chanKey]uint32{},
		locals: make([]*local, 1), prints: make([]print, 1), // number 0 is unused
		messages: make([]*message, 1), msgPrint: make([]print, 1), channels: make([]channel, 1),
	}
	for _, l := range cfg.Spec.All() {
		sp.rules = append(sp.rules, make([]bool, len(l.Rules)+1))
	}
	return sp
}

// internLocal returns the number of a local state.
func (sp *space) internLocal(l *local) uint32 {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	sp.key = l.appendTo(sp.key[:0])
	if id, ok := sp.localIDs[string(sp.key)]; ok {
		return id
	}
	id := uint32(len(sp.locals))
	sp.localIDs[string(sp.key)] = id
	sp.locals, sp.prints = append(sp.locals, l.clone()), append(sp.prints, printOf(sp.key))
	return id
}

// internMessage returns the number of a message.
func (sp *space) internMessage(m *message) uint32 {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	sp.key = m.appendTo(sp.key[:0])
	if id, ok := sp.msgIDs[string(sp.key)]; ok {
		return id
	}
	id := uint32(len(sp.messages))
	sp.msgIDs[string(sp.key)] = id
	kept := *m
	kept.Message = process.Message{}
	kept.CopyFrom(&m.Message)
	kept.past = slices.Clone(m.past)
	sp.messages, sp.msgPrint = append(sp.messages, &kept), append(sp.msgPrint, printOf(sp.key))
	return id
}

// channelPut returns the channel after a message was sent into it.
func (sp *space) channelPut(before, last uint32, ordered bool) uint32 {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if ordered {
		return sp.queue(before, last)
	}
	return sp.bag(before, last)
}

// queue appends to a FIFO link. It is called with the lock held.
func (sp *space) queue(before, last uint32) uint32 {
	id, known := sp.channel(before, last)
	if known {
		return id
	}
	c := &sp.channels[id]
	b := sp.channels[before].print
	c.print = b.chain(sp.msgPrint[last].lo).chain(sp.msgPrint[last].hi).spread()
	if before == 0 {
		c.takes = []taking{{last, 0}}
		return id
	}
	all := sp.contents(id)
	if sp.cfg.Reorders == 0 {
		all = all[:1]
	}
	for i := range all {
		rest := uint32(0)
		for k, m := range sp.contents(id) {
			if k != i {
				rest = sp.queue(rest, m)
			}
		}
		sp.channels[id].takes = append(sp.channels[id].takes, taking{all[i], rest})
	}
	return id
}

// contents returns the messages of a channel, the one sent first first.
func (sp *space) contents(id uint32) []uint32 {
	var all []uint32
	for ; id != 0; id = sp.channels[id].before {
		all = append(all, sp.channels[id].last)
	}
	slices.Reverse(all)
	return all
}

// bag puts a message into a link without order, whose messages are kept sorted. It is
// called with the lock held.
func (sp *space) bag(before, added uint32) uint32 {
	all := append(sp.contents(before), added)
	slices.Sort(all)
	return sp.bagOf(all)
}

func (sp *space) bagOf(sorted []uint32) uint32 {
	id, known := uint32(0), true
	for _, m := range sorted {
		id, known = sp.channel(id, m)
		if !known {
			c := &sp.channels[id]
			c.print = sp.channels[c.before].print.plus(sp.msgPrint[m])
		}
	}
	if len(sp.channels[id].takes) > 0 || id == 0 {
		return id
	}
	var takes []taking
	for i, m := range sorted {
		if i == 0 || m != sorted[i-1] {
			takes = append(takes, taking{m, sp.bagOf(slices.Delete(slices.Clone(sorted), i, i+1))})
		}
	}
	sp.channels[id].takes = takes
	return id
}

func (sp *space) channel(before, last uint32) (id uint32, known bool) {
	key := chanKey{before, last}
	if id, ok := sp.chanIDs[key]; ok {
		return id, true
	}
	id = uint32(len(sp.channels))
	sp.chanIDs[key] = id
	sp.channels = append(sp.channels, channel{last: last, before: before, length: sp.channels[before].length + 1})
	return id, false
}

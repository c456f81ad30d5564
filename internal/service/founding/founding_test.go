package founding

import (
	"fmt"
	"reflect"
	"testing"
)

func record(uids ...uint64) Record {
	r := make(Record, len(uids))
	for i, uid := range uids {
		r[i] = Founder{uint64(i) + 1, uid}
	}
	return r
}

func TestDecide(t *testing.T) {
	fresh := func(uid uint64) Answer { return Answer{UID: uid, Phase: New} }
	holds := func(uid uint64, r Record) Answer { return Answer{UID: uid, Phase: Recorded, Record: r} }
	founded := func(uid uint64, r Record) Answer { return Answer{UID: uid, Phase: Founded, Record: r} }
	notReady := Answer{UID: 99}
	r := record(10, 20, 30)
	for name, c := range map[string]struct {
		id, uid uint64
		record  Record
		answers map[uint64]Answer
		want    Decision
	}{
		"nobody answers":                     {1, 10, nil, nil, Decision{Missing: []uint64{2, 3}}},
		"a majority is no more than one":     {1, 10, nil, map[uint64]Answer{2: fresh(20)}, Decision{Missing: []uint64{3}}},
		"not ready is no answer":             {1, 10, nil, map[uint64]Answer{2: fresh(20), 3: notReady}, Decision{Missing: []uint64{3}}},
		"all are new":                        {1, 10, nil, map[uint64]Answer{2: fresh(20), 3: fresh(30)}, Decision{Step: Write, Record: r}},
		"the first one proposes":             {2, 20, nil, map[uint64]Answer{1: fresh(10), 3: fresh(30)}, Decision{Missing: []uint64{1}}},
		"another one has the record":         {3, 30, nil, map[uint64]Answer{2: holds(20, r)}, Decision{Step: Write, Record: r}},
		"the record is of another directory": {3, 31, nil, map[uint64]Answer{2: founded(20, r)}, Decision{Step: Write, Record: r}},
		"two records": {3, 30, nil, map[uint64]Answer{1: founded(10, r), 2: founded(21, record(11, 21, 31))},
			Decision{Missing: []uint64{2}, Differs: true}},
		"a record of other servers": {2, 20, nil, map[uint64]Answer{1: founded(10, record(10, 20))},
			Decision{Missing: []uint64{1}, Differs: true}},
		"it holds the record alone":   {1, 10, r, map[uint64]Answer{2: fresh(20)}, Decision{Missing: []uint64{2, 3}}},
		"one does not hold it yet":    {1, 10, r, map[uint64]Answer{2: holds(20, r), 3: fresh(30)}, Decision{Missing: []uint64{3}}},
		"all hold it":                 {1, 10, r, map[uint64]Answer{2: holds(20, r), 3: holds(30, r)}, Decision{Step: Found}},
		"an emptied one holds it too": {1, 10, r, map[uint64]Answer{2: holds(20, r), 3: holds(31, r)}, Decision{Step: Found}},
		"another one has founded":     {1, 10, r, map[uint64]Answer{2: founded(20, r)}, Decision{Step: Found}},
		"it was emptied":              {3, 31, r, nil, Decision{Step: Rejoin}},
		"its record is not theirs": {1, 10, r, map[uint64]Answer{2: founded(21, record(11, 21, 31)), 3: holds(30, r)},
			Decision{Missing: []uint64{2}, Differs: true}},
	} {
		s := Server{ID: c.id, UID: c.uid, Founders: []uint64{1, 2, 3}, Record: c.record}
		if got := s.Decide(c.answers); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestRestored: a restored server rejoins an old cluster only if it knows that the others
// were not restored too.
func TestRestored(t *testing.T) {
	old := record(11, 21, 31)
	restored := func(uid uint64) Answer { return Answer{UID: uid, Phase: Restored} }
	holder := Answer{UID: 31, Phase: Founded, Record: old}
	for name, c := range map[string]struct {
		answers map[uint64]Answer
		want    Decision
	}{
		"all were restored":    {map[uint64]Answer{2: restored(20), 3: restored(30)}, Decision{Step: Write, Record: record(10, 20, 30)}},
		"one was left empty":   {map[uint64]Answer{2: restored(20), 3: {UID: 30, Phase: New}}, Decision{Step: Write, Record: record(10, 20, 30)}},
		"another one proposes": {map[uint64]Answer{2: restored(20), 3: {UID: 30, Phase: Recorded, Record: record(10, 20, 30)}}, Decision{Step: Write, Record: record(10, 20, 30)}},
		"one is missing":       {map[uint64]Answer{3: holder}, Decision{Missing: []uint64{2}}},
		"one has its old data": {map[uint64]Answer{2: restored(20), 3: holder}, Decision{Missing: []uint64{3}, Differs: true}},
		"the cluster goes on":  {map[uint64]Answer{2: {UID: 21, Phase: Founded, Record: old}, 3: holder}, Decision{Step: Write, Record: old}},
	} {
		s := Server{ID: 1, UID: 10, Founders: []uint64{1, 2, 3}, Restored: true}
		if got := s.Decide(c.answers); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if got := s.Says(c.answers); !reflect.DeepEqual(got, restored(10)) {
			t.Errorf("%s: it says %+v", name, got)
		}
	}
}

func TestOneServerFoundsAtOnce(t *testing.T) {
	s := Server{ID: 4, UID: 40, Founders: []uint64{4}}
	if got := s.Decide(nil); got.Step != Write || !reflect.DeepEqual(got.Record, Record{{4, 40}}) {
		t.Fatalf("%+v, want that it writes a record of itself", got)
	}
	s.Record = Record{{4, 40}}
	if got := s.Decide(nil); got.Step != Found {
		t.Fatalf("%+v, want that it founds", got)
	}
}

// world has servers, their disks, and the messages that each has received. A crash loses
// the received messages. An emptied server returns with another directory.
type world struct {
	servers []host
	drawn   uint64 // UIDs so far
	emptied int    // how often a disk was emptied
	crashed int
}

type host struct {
	disk  Disk
	m     Machine
	lost  bool // a directory of this server was emptied
	voted bool // a directory of this server founded, and may have voted
	blank bool // waits to be taken back
}

func newWorld(n int) *world {
	w := &world{servers: make([]host, n)}
	for i := range w.servers {
		w.draw(i)
	}
	return w
}

// draw makes a directory for a server, and starts it.
func (w *world) draw(i int) {
	w.drawn++
	s := Server{ID: uint64(i) + 1, UID: w.drawn}
	for j := range w.servers {
		s.Founders = append(s.Founders, uint64(j)+1)
	}
	w.servers[i].disk = Disk{Server: s}
	w.servers[i].boot()
}

// boot starts a server with what its disk holds.
func (h *host) boot() {
	h.m, h.blank = Machine{}, false
	h.m.Load(h.disk)
	if h.disk.State {
		h.m.Step(0)
	}
}

// step carries out what a server decides, and returns what is broken by it.
func (w *world) step(i int) string {
	h := &w.servers[i]
	switch d := h.m.Step(0); d.Step {
	case Write:
		if h.disk.Record != nil {
			return "a directory gets a second record"
		}
		h.disk.Record = d.Record
		h.m.Written(true)
	case Rejoin:
		h.blank = true
	case Found:
		if h.blank {
			return "a server that rejoins founds"
		}
		h.disk.State = true
		h.m.Gained()
		return w.found(h)
	}
	return ""
}

// found returns what is broken when a server founds. If all servers have lost their data
// at some time, nothing is left to protect.
func (w *world) found(h *host) string {
	all := true
	for i := range w.servers {
		all = all && w.servers[i].lost
	}
	if all {
		return ""
	}
	if h.voted {
		return "a server that may have voted founds again with an empty directory"
	}
	h.voted = true
	for i := range w.servers {
		if other := &w.servers[i]; other.disk.State && !other.disk.Record.Equal(h.disk.Record) {
			return fmt.Sprintf("two clusters are founded: %v and %v", other.disk.Record, h.disk.Record)
		}
	}
	return ""
}

func (w *world) says(i int) Answer { return w.servers[i].m.Says() }

func (w *world) deliver(from, to int, a Answer) { w.servers[to].m.Hear(uint64(from)+1, a) }

func (w *world) crash(i int) {
	w.crashed++
	w.servers[i].boot()
}

func (w *world) empty(i int) {
	w.crashed++
	w.emptied++
	w.servers[i].lost = true
	w.draw(i)
}

// told reports whether a server reports different records and none has founded: a lost
// disk interrupted the founding before anything was stored.
func (w *world) told() bool {
	told := false
	for i := range w.servers {
		if w.servers[i].disk.State {
			return false
		}
		told = told || w.servers[i].m.decide().Differs
	}
	return told
}

// settle delivers messages between all servers until nothing changes. It returns how many
// founded, and how many wait to be readmitted.
func (w *world) settle(t *testing.T) (founded, blank int) {
	for before := ""; before != w.key(); {
		before = w.key()
		for i := range w.servers {
			for j := range w.servers {
				if i != j {
					w.deliver(j, i, w.says(j))
				}
			}
			if broken := w.step(i); broken != "" {
				t.Fatal(broken)
			}
		}
	}
	for i := range w.servers {
		switch {
		case w.servers[i].disk.State:
			founded++
		case w.servers[i].blank:
			blank++
		}
	}
	return founded, blank
}

package node

import (
	"time"

	"github.com/conclave-io/conclave/service/agreement"
	"github.com/conclave-io/conclave/service/founding"
	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/replica"
)

// begin makes the replica from what the disk holds. A server with an empty data
// directory is either a founder of the cluster or one that lost its data, and
// must find out first: a founder may vote, the other has forgotten its vote and
// what it acknowledged, and waits until the others take it back. One that joined
// is no founder, and waits as well.
//
// It leaves the replica nil if the node is stopped meanwhile.
func (n *Node) begin() error {
	disk := agreement.Disk{HardState: n.found.HardState, Snapshot: n.found.Snapshot, Entries: n.found.Entries}
	if n.found.Fresh && !n.cfg.Joined {
		founder, err := n.isFounder()
		if err != nil || n.stopping() {
			return err
		}
		if founder {
			if disk.Snapshot, err = n.foundingState(); err != nil {
				return err
			}
			if err := n.founded(founding.Found); err != nil {
				return err
			}
		}
	}
	cfg := n.cfg.replica()
	cfg.UID, cfg.Founders = n.found.UID, n.founders()
	made, err := replica.New(cfg, disk)
	if err != nil {
		return err
	}
	n.replica = made
	for _, hello := range n.records.all() {
		n.replica.Met(memberOf(hello), levelsOf(hello))
	}
	n.acquaint()
	return nil
}

// openRecords begins the records with what the disk holds.
func (n *Node) openRecords() (err error) {
	n.records.joined, n.records.founded = n.cfg.Joined, !n.found.Fresh
	n.records.self, err = n.cfg.founder(n.found)
	return err
}

func (n *Node) stopping() bool {
	select {
	case <-n.stop:
		return true
	default:
		return false
	}
}

// briefWait is how long a founder waits for the same servers before it tells the log:
// longer than those take that are started together.
const briefWait = time.Second

// isFounder finds out whether this server founds the cluster, or lost its data. It
// asks the others until that is certain (see package founding), and logs
// which servers it waits for.
func (n *Node) isFounder() (bool, error) {
	self := n.records.server()
	tick := time.NewTicker(n.cfg.tick())
	defer tick.Stop()
	var w waiting
	for {
		d := self.Decide(n.records.answers())
		switch d.Step {
		case founding.Write:
			if err := n.adopt(d.Record); err != nil {
				return false, err
			}
			self.Record = d.Record
			continue
		case founding.Found:
			return true, nil
		case founding.Rejoin:
			n.log.Warn("the cluster was founded with other data of this server, which is gone: rejoining as an empty member", "uid", self.UID, "founded with", self.Record.UID(self.ID))
			return false, nil
		}
		if w.news(d) {
			n.tellWait(d)
		}
		select {
		case <-tick.C:
		case <-n.messages: // from a cluster that this server is not part of yet
		case f := <-n.calls:
			f()
		case r := <-n.refused:
			if err := n.weigh(r); err != nil {
				return false, err
			}
		case <-n.stop:
			return false, nil
		}
	}
}

// waiting is what a founder waits for, and what it told of that.
type waiting struct {
	seen, told founding.Decision
	since      time.Time // when seen began
}

// news reports, once, whether a wait is to be told.
func (w *waiting) news(d founding.Decision) bool {
	if !d.Equal(w.seen) {
		w.seen, w.since = d, time.Now()
	}
	if d.Equal(w.told) || time.Since(w.since) < briefWait {
		return false
	}
	w.told = d
	return true
}

// tellWait logs which servers this one waits for.
func (n *Node) tellWait(d founding.Decision) {
	switch {
	case d.Differs:
		n.log.Error("servers have the data or the founding record of another cluster: waiting until they are started with empty data directories, or this one is", "servers", d.Missing)
	default:
		n.log.Info("waiting for servers before the cluster is founded: all founders must be up once", "servers", d.Missing)
	}
}

// adopt puts a founding record on disk, and tells the others.
func (n *Node) adopt(record founding.Record) error {
	if err := n.store.SaveRecord(record); err != nil {
		return err
	}
	n.found.Record = record
	return n.founded(founding.Write)
}

// founded tells the others of a step of the founding that is on disk.
func (n *Node) founded(step founding.Step) error {
	n.records.settle(n.found.Record, step == founding.Found)
	n.net.Introduce()
	return n.cfg.founded(step)
}

// founders is what the cluster is to have on record of its founders, whoever of
// them is met first.
func (n *Node) founders() []registry.Member {
	var founders []registry.Member
	for _, f := range n.found.Record {
		founders = append(founders, registry.Member{ID: f.ID, UID: f.UID, PeerAddress: n.cfg.Peers[f.ID]})
	}
	return founders
}

// hearRecord takes the founding record over from another server, if this one
// joined and has none. It has no use for it, but a founder that lost its data may
// find nobody else to ask.
func (n *Node) hearRecord(record founding.Record) {
	if !n.cfg.Joined || n.found.Record != nil || record == nil {
		return
	}
	if err := n.adopt(record); err != nil {
		n.log.Warn("the founding record could not be saved", "err", err)
	}
}

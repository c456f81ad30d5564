package node

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/backup"
	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/transport"
)

// begin creates the replica from what the disk holds. A server with an empty data
// directory is either a founder of the cluster or one that lost its data, and has to
// find out which. A founder may vote. A server that lost its data has forgotten its vote
// and the entries that it acknowledged, so it waits until the others take it back. A
// server that joined is no founder and waits as well.
//
// If the node is stopped meanwhile, the replica stays nil.
func (n *Node) begin() error {
	how, err := n.findOut()
	if err != nil || n.stopping() {
		return err
	}
	disk := agreement.Disk{HardState: n.found.HardState, Snapshot: n.found.Snapshot, Entries: n.found.Entries}
	if how == founding.Found {
		if disk.Snapshot, err = n.foundingState(); err != nil {
			return err
		}
		if err := n.gained(); err != nil {
			return err
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
	n.updateLevel()
	n.ready.Store(true)
	return nil
}

// openRecords initialises the records from what the disk holds.
func (n *Node) openRecords() {
	n.records.with(func(m *founding.Machine) {
		m.Load(founding.Disk{Server: n.cfg.founder(n.found), Joined: n.cfg.Joined, State: !n.found.Fresh})
	})
}

func (n *Node) stopping() bool {
	select {
	case <-n.stop:
		return true
	default:
		return false
	}
}

// findOut carries out the decisions of package founding until it is clear how this server
// starts. A founder asks the others until then.
func (n *Node) findOut() (founding.Step, error) {
	tick := time.NewTicker(n.cfg.tick())
	defer tick.Stop()
	for {
		if how, err := n.decide(); err != nil || how != founding.Wait {
			return how, err
		}
		select {
		case <-tick.C:
		case <-n.messages: // from a cluster that this server is not part of yet
		case f := <-n.calls:
			f()
		case r := <-n.refused:
			if err := n.weigh(r); err != nil {
				return founding.Wait, err
			}
		case <-n.stop:
			return founding.Wait, nil
		}
	}
}

// decide carries out the decisions of package founding up to a step that its caller has to
// carry out: to wait, or to start.
func (n *Node) decide() (founding.Step, error) {
	for {
		var a founding.Action
		n.records.with(func(m *founding.Machine) { a = m.Step(now()) })
		if a.Introduce {
			n.net.Introduce()
		}
		if a.Tell {
			n.logWait(a.Decision)
		}
		switch a.Step {
		case founding.Write:
			if err := n.adopt(a.Record); err != nil {
				return founding.Wait, err
			}
		case founding.Rejoin:
			n.log.Warn("the cluster was founded with another data directory of this server, which is lost; rejoining as an empty member", "uid", n.found.UID, "founded_with_uid", n.found.Record.UID(n.cfg.ID))
			return a.Step, nil
		default:
			return a.Step, nil
		}
	}
}

// logWait logs which servers this one waits for.
func (n *Node) logWait(d founding.Decision) {
	switch {
	case d.Differs:
		n.log.Error("peers have the data or the founding record of another cluster; waiting until either they or this server are started with an empty data directory", "peers", d.Missing)
	default:
		n.log.Info("waiting for peers before the cluster can be founded; every founder must have been up once", "peers", d.Missing)
	}
}

// adopt puts a founding record on disk.
func (n *Node) adopt(record founding.Record) error {
	err := n.store.SaveRecord(record)
	n.records.with(func(m *founding.Machine) { m.Written(err == nil) })
	if err != nil {
		return err
	}
	if n.found.Record = record; n.replica != nil {
		n.replica.Founded(n.founders())
	}
	return n.cfg.founded(founding.Write)
}

// gained notes that the disk now holds state of the cluster, and tells the others.
func (n *Node) gained() error {
	n.records.with((*founding.Machine).Gained)
	if _, err := n.decide(); err != nil {
		return err
	}
	return n.cfg.founded(founding.Found)
}

// founders returns the founders as the cluster records them, in whatever order
// they meet.
func (n *Node) founders() []registry.Member {
	var founders []registry.Member
	for _, f := range n.found.Record {
		founders = append(founders, registry.Member{ID: f.ID, UID: f.UID, PeerAddress: n.cfg.Peers[f.ID]})
	}
	return founders
}

// foundingState returns the state from which this server founds its cluster, after it is on
// disk: nothing, or the state of a backup that was placed in the data directory.
func (n *Node) foundingState() (*raftpb.Snapshot, error) {
	founders := slices.Sorted(maps.Keys(n.cfg.Peers))
	snapshot := replica.Bootstrap(founders)
	seed, err := n.store.Seed()
	if err != nil {
		return nil, fmt.Errorf("restoring the backup: %w", err)
	}
	if seed == nil {
		return snapshot, n.store.Save(nil, nil, snapshot, true)
	}
	restored, err := backup.Decode(seed)
	if err != nil {
		return nil, fmt.Errorf("restoring the backup: %w", err)
	}
	n.log.Info("founding the cluster from a backup", "backup_time", time.Unix(0, restored.Time).UTC(), "epoch", restored.Registry.Epoch())
	snapshot = replica.BootstrapFrom(founders, restored.Index, restored.Term, restored.Registry.Encode())
	if err := n.store.Save(nil, nil, snapshot, true); err != nil {
		return nil, err
	}
	if err := n.store.DropSeed(); err != nil {
		n.log.Warn("cannot remove the backup that the cluster was founded from; it is no longer needed", "err", err)
	}
	return snapshot, nil
}

// refusal is the final refusal of a peer to talk to this server as it is.
type refusal struct {
	peer uint64
	err  error
}

// weigh passes a refusal to package founding, which decides which side is wrong. It
// returns an error if this server must stop.
func (n *Node) weigh(r refusal) error {
	why := founding.Misfit
	if told, is := errors.AsType[*transport.Refusal](r.err); is {
		why = told.Reason()
	}
	others := max(len(n.cfg.Peers), n.records.size()) - 1
	stop := false
	n.records.with(func(m *founding.Machine) { stop = m.Refused(r.peer, why, others, n.served) })
	switch {
	case stop && why == founding.Removed:
		return &replica.RemovedError{ID: n.cfg.ID}
	case stop:
		return fmt.Errorf("server %d refuses connections from this server: %w", r.peer, r.err)
	case n.served && !(n.cfg.Joined && why == founding.Unknown):
		n.log.Warn("a peer refuses connections from this server; continuing without that peer", "peer", r.peer, "err", r.err)
	}
	return nil // the transport has logged it
}

package node

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/backup"
	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/store"
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
		if disk.Snapshot, err = n.founder.state(); err != nil {
			return err
		}
		if err := n.founder.gained(); err != nil {
			return err
		}
	}
	cfg := n.cfg.replica()
	cfg.UID, cfg.Founders = n.found.UID, n.founder.members()
	made, err := replica.New(cfg, disk)
	if err != nil {
		return err
	}
	n.replica, n.founder.recorded = made, made.Founded
	for _, hello := range n.records.all() {
		n.replica.Met(memberOf(hello), levelsOf(hello))
	}
	n.acquaint()
	n.applied.update(made)
	n.ready.Store(true)
	return nil
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
		if how, err := n.founder.decide(); err != nil || how != founding.Wait {
			return how, err
		}
		select {
		case <-tick.C:
		case <-n.messages: // from a cluster that this server is not part of yet
		case f := <-n.calls:
			f()
		case r := <-n.refused:
			if err := n.founder.weigh(r, n.served); err != nil {
				return founding.Wait, err
			}
		case <-n.stop:
			return founding.Wait, nil
		}
	}
}

// founder carries out what package founding decides: how this server starts, and which founding
// record it keeps.
type founder struct {
	cfg      *Config
	log      *slog.Logger
	store    keeper
	net      *transport.Transport
	records  *records
	found    *store.State            // what the disk holds
	recorded func([]registry.Member) // is told of a new record; nil until there is a replica
}

// load initialises the records from what the disk holds.
func (f *founder) load() {
	f.records.with(func(m *founding.Machine) {
		m.Load(founding.Disk{Server: f.cfg.founder(f.found), Joined: f.cfg.Joined, State: !f.found.Fresh})
	})
}

// reconsider makes package founding decide again after news. A running server does not
// need the record, so an error is only logged.
func (f *founder) reconsider() {
	if _, err := f.decide(); err != nil {
		f.log.Warn("cannot save the founding record", "err", err)
	}
}

// decide carries out the decisions of package founding up to a step that its caller has to
// carry out: to wait, or to start.
func (f *founder) decide() (founding.Step, error) {
	for {
		var a founding.Action
		f.records.with(func(m *founding.Machine) { a = m.Step(now()) })
		if a.Introduce {
			f.net.Introduce()
		}
		if a.Tell {
			f.logWait(a.Decision)
		}
		switch a.Step {
		case founding.Write:
			if err := f.adopt(a.Record); err != nil {
				return founding.Wait, err
			}
		case founding.Rejoin:
			f.log.Warn("the cluster was founded with another data directory of this server, which is lost; rejoining as an empty member", "uid", f.found.UID, "founded_with_uid", f.found.Record.UID(f.cfg.ID))
			return a.Step, nil
		default:
			return a.Step, nil
		}
	}
}

// logWait logs which servers this one waits for.
func (f *founder) logWait(d founding.Decision) {
	switch {
	case d.Differs:
		f.log.Error("peers have the data or the founding record of another cluster; waiting until either they or this server are started with an empty data directory", "peers", d.Missing)
	default:
		f.log.Info("waiting for peers before the cluster can be founded; every founder must have been up once", "peers", d.Missing)
	}
}

// adopt puts a founding record on disk.
func (f *founder) adopt(record founding.Record) error {
	err := f.store.SaveRecord(record)
	f.records.with(func(m *founding.Machine) { m.Written(err == nil) })
	if err != nil {
		return err
	}
	if f.found.Record = record; f.recorded != nil {
		f.recorded(f.members())
	}
	return f.cfg.founded(founding.Write)
}

// gained notes that the disk now holds state of the cluster, and tells the others.
func (f *founder) gained() error {
	f.records.with((*founding.Machine).Gained)
	if _, err := f.decide(); err != nil {
		return err
	}
	return f.cfg.founded(founding.Found)
}

// members returns the founders as the cluster records them, in whatever order
// they meet.
func (f *founder) members() []registry.Member {
	var founders []registry.Member
	for _, m := range f.found.Record {
		founders = append(founders, registry.Member{ID: m.ID, UID: m.UID, PeerAddress: f.cfg.Peers[m.ID]})
	}
	return founders
}

// state returns the state from which this server founds its cluster, after it is on
// disk: nothing, or the state of a backup that was placed in the data directory.
func (f *founder) state() (*raftpb.Snapshot, error) {
	founders := slices.Sorted(maps.Keys(f.cfg.Peers))
	snapshot := replica.Bootstrap(founders)
	seed, err := f.store.Seed()
	if err != nil {
		return nil, fmt.Errorf("restoring the backup: %w", err)
	}
	if seed == nil {
		return snapshot, f.store.Save(nil, nil, snapshot, true)
	}
	restored, err := backup.Decode(seed)
	if err != nil {
		return nil, fmt.Errorf("restoring the backup: %w", err)
	}
	f.log.Info("founding the cluster from a backup", "backup_time", time.Unix(0, restored.Time).UTC(), "epoch", restored.Registry.Epoch())
	snapshot = replica.BootstrapFrom(founders, restored.Index, restored.Term, restored.Registry.Freeze().Encode())
	if err := f.store.Save(nil, nil, snapshot, true); err != nil {
		return nil, err
	}
	if err := f.store.DropSeed(); err != nil {
		f.log.Warn("cannot remove the backup that the cluster was founded from; it is no longer needed", "err", err)
	}
	return snapshot, nil
}

// refusal is the final refusal of a peer to talk to this server as it is.
type refusal struct {
	peer uint64
	err  error
}

// weigh passes a refusal to package founding, which decides which side is wrong. It
// returns an error if this server must stop. Served says whether it has known a leader.
func (f *founder) weigh(r refusal, served bool) error {
	why := founding.Misfit
	if told, is := errors.AsType[*transport.Refusal](r.err); is {
		why = told.Reason()
	}
	others := max(len(f.cfg.Peers), f.records.size()) - 1
	stop := false
	f.records.with(func(m *founding.Machine) { stop = m.Refused(r.peer, why, others, served) })
	switch {
	case stop && why == founding.Removed:
		return &replica.RemovedError{ID: f.cfg.ID}
	case stop:
		return fmt.Errorf("server %d refuses connections from this server: %w", r.peer, r.err)
	case served && !(f.cfg.Joined && why == founding.Unknown):
		f.log.Warn("a peer refuses connections from this server; continuing without that peer", "peer", r.peer, "err", r.err)
	}
	return nil // the transport has logged it
}

package stream

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// commandFromProto translates a request in the session with an id into an empty command, or returns what is
// wrong with it. The registry checks the rest. The caller is the proven one, in origin: the owner of a
// session, and the actor of a revocation, are never taken from the request.
func commandFromProto(c *registry.Command, origin *registry.Origin, id registry.SessionID, req *api.Request) (problem string) {
	c.Session, c.Sequence, c.Low = id, req.GetSequence(), req.GetLow()
	switch op := req.GetOp().(type) {
	case *api.Request_Open:
		c.Op, c.TTL, c.Owner = registry.OpOpen, op.Open.GetTtlNs(), origin.Actor
		c.Host, c.PID, c.Program = op.Open.GetHost(), op.Open.GetPid(), op.Open.GetProgram()
	case *api.Request_Renew:
		c.Op = registry.OpRenew
	case *api.Request_Close:
		c.Op = registry.OpClose
	case *api.Request_Acquire:
		return acquireOf(c, op.Acquire)
	case *api.Request_Release:
		c.Op, c.Hold, c.Unused = registry.OpRelease, op.Release.GetHold(), op.Release.GetUnused()
	case *api.Request_Cancel:
		c.Op, c.Hold = registry.OpCancel, op.Cancel.GetHold()
	case *api.Request_Update:
		c.Op, c.Hold, c.Value = registry.OpUpdate, op.Update.GetHold(), string(op.Update.GetValue())
	case *api.Request_Revoke:
		c.By = new(*origin)
		return revokeOf(c, op.Revoke)
	case *api.Request_Transfer:
		c.Op, c.Hold, c.Value = registry.OpTransfer, op.Transfer.GetHold(), string(op.Transfer.GetTo())
	default:
		return "the request asks for nothing, or for something that this server does not know"
	}
	return ""
}

func acquireOf(c *registry.Command, a *api.Acquire) (problem string) {
	class, problem := ClassFromProto(a.GetClass())
	c.Op, c.Class = registry.OpAcquire, class
	c.Name, c.Try, c.Value = a.GetName(), a.GetTry(), string(a.GetValue())
	c.Limit, c.Shared = a.GetLimit(), a.GetShared()
	c.Priority, c.Patience = a.GetPriority(), a.GetPatienceNs()
	c.AtLeast, c.LossDelay = a.GetAtLeastNs(), a.GetDelayAfterLossNs()
	for _, k := range a.GetKeeps() {
		of, wrong := ClassFromProto(k.GetClass())
		if wrong != "" {
			problem = "keeps: " + wrong
		}
		c.Keeps = append(c.Keeps, registry.Kept{Class: of, Name: k.GetName(), Fence: k.GetFence()})
	}
	return problem
}

func revokeOf(c *registry.Command, r *api.Revoke) (problem string) {
	class, problem := ClassFromProto(r.GetClass())
	c.Op, c.Class = registry.OpRevoke, class
	c.Name, c.Fence, c.Value = r.GetName(), r.GetFence(), r.GetReason()
	return problem
}

// ClassFromProto translates a class, or returns what is wrong with it.
func ClassFromProto(class api.Class) (registry.Class, string) {
	if class < 0 || class > api.Class_CLASS_ELECTION {
		return 0, fmt.Sprintf("class %d is unknown: 0 is a lock, 1 an election", class)
	}
	return registry.Class(class), ""
}

// ReplyProto translates an outcome in the session with a secret. The codes are the same in the
// interface.
func ReplyProto(secret []byte, o *registry.Outcome) *api.Reply {
	r := &o.Result
	reply := &api.Reply{
		Session: secret, Sequence: o.Sequence,
		Code: api.Code(r.Code), Message: r.Message,
		Fence: r.Fence, Floor: r.Floor, Ahead: r.Ahead, RemainingNs: r.Remaining, Revoked: r.Revoked, Lingers: r.Lingers,
	}
	if r.Remaining != 0 { // of an Open or a Renew that did
		reply.Id = o.Session[:]
	}
	if r.Holder != nil {
		reply.Holder = HolderProto(r.Holder)
	}
	if r.Closed != nil {
		reply.Closed = closedProto(r.Closed)
	}
	if r.Guard != nil {
		reply.Guard = &api.Guard{Prefix: r.Guard.Prefix, Algorithm: r.Guard.Algorithm}
	}
	if r.Deadlock != nil {
		reply.CycleLength = uint32(r.Deadlock.Length)
		reply.Cycle = ProtoList(r.Deadlock.Cycle, dependencyProto)
	}
	return reply
}

func dependencyProto(d *registry.Dependency) *api.Dependency {
	return &api.Dependency{Waiter: waiterProto(&d.Waiter), Class: api.Class(d.Class), Name: d.Name, Holder: HolderProto(&d.Holder)}
}

// WaitingProto translates a waiter that keeps other holds meanwhile.
func WaitingProto(w *registry.Waiting) *api.Waiting {
	return &api.Waiting{
		Waiter: waiterProto(&w.Waiter), Class: api.Class(w.Class), Name: w.Name, HolderCount: uint32(w.HolderCount), Holders: ProtoList(w.Holders, HolderProto),
		Keeps: ProtoList(w.Keeps, func(k *registry.Kept) *api.Kept {
			return &api.Kept{Class: api.Class(k.Class), Name: k.Name, Fence: k.Fence}
		}),
	}
}

func waiterProto(w *registry.Waiter) *api.Waiter {
	return &api.Waiter{
		Session: slices.Clone(w.Session[:]), Sequence: w.Sequence, SinceUnixNs: w.Since,
		Host: w.Host, Pid: w.PID, Program: w.Program,
		Value: []byte(w.Value), Shared: w.Shared, Priority: w.Priority, Owner: w.Owner,
	}
}

// HolderProto translates a holder.
func HolderProto(h *registry.Holder) *api.Holder {
	return &api.Holder{
		Session: slices.Clone(h.Session[:]), Sequence: h.Sequence, Fence: h.Fence, SinceUnixNs: h.Since,
		Host: h.Host, Pid: h.PID, Program: h.Program, Value: []byte(h.Value),
		Shared: h.Shared, Priority: h.Priority, Revoked: h.Revoked, Reason: h.Reason, Owner: h.Owner,
	}
}

// ResourceProto translates a resource with its holders and waiters.
func ResourceProto(r *registry.Resource) *api.Resource {
	return &api.Resource{
		Name: r.Name, Class: api.Class(r.Class), Limit: r.Limit, QueueLength: uint32(r.QueueLength),
		Holders: ProtoList(r.Holders, HolderProto), Waiters: ProtoList(r.Waiters, waiterProto), Closed: ProtoList(r.Closed, closedProto),
	}
}

func closedProto(l *registry.Linger) *api.Closed {
	return &api.Closed{
		Fence: l.Fence, SinceUnixNs: l.Since, UntilUnixNs: l.Until,
		Owner: l.Owner, Host: l.Host, Pid: l.PID, Program: l.Program,
	}
}

// ProtoList translates the elements of a list, if there are any.
func ProtoList[A, B any](list []A, translate func(*A) *B) (all []*B) {
	for i := range list {
		all = append(all, translate(&list[i]))
	}
	return all
}

// EndedProto translates a hold that has ended.
func EndedProto(e *registry.Ended) *api.Ended {
	return &api.Ended{
		Fence: e.Fence, SinceUnixNs: e.Since, UntilUnixNs: e.Until,
		Host: e.Host, Pid: e.PID, Program: e.Program, How: api.Ending(e.How), Reason: e.Reason,
		Owner: e.Owner, By: e.By,
	}
}

// SessionProto translates a session. Only the leader knows its remaining time, in ns.
func SessionProto(s *registry.Session, remaining int64) *api.Session {
	return &api.Session{
		Id: s.ID[:], TtlNs: s.TTL, Host: s.Host, Pid: s.PID, Program: s.Program,
		Holds: uint32(s.Holds), Waits: uint32(s.Waits), OpenedUnixNs: s.Opened, RemainingNs: remaining,
		Owner: s.Owner, Leaving: s.Leaving,
	}
}

package clienttest

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// State is what the servers of a Cluster agree on: the protocol's rules
// for sessions, queues and fences, in their plainest form.
type State struct {
	Fence     uint64
	Sessions  map[string]*Session  // by secret
	Resources map[string]*Resource // by class and name
	// Guard returns what guards a lock if it is not taken here, or nil.
	Guard func(name string) *api.Guard
	// Most is the largest number of answers that a session ever had to keep.
	Most int
	// Opened and Closed count the sessions that were opened, and that their clients closed.
	Opened int
	Closed int
	// Quiet means that only renewals report a revocation.
	Quiet bool
	// granted has the secret of the session to which each fence was granted.
	granted map[uint64]string
}

// Session is the session of a client.
type Session struct {
	open    *api.Open
	ttl     time.Duration
	until   boottime.Time
	low     uint64
	answers map[uint64]*api.Reply
	claims  map[uint64]*Claim
}

// Claim is a hold, or a wait for one.
type Claim struct {
	Session  string // its secret
	sequence uint64
	acquire  *api.Acquire
	value    []byte
	fence    uint64 // 0 while it waits
	revoked  bool
}

// Resource is a lock or an election. It has its holder first, then the queue.
type Resource struct {
	key   string
	Queue []*Claim
}

func newState() *State {
	return &State{Sessions: make(map[string]*Session), Resources: make(map[string]*Resource), granted: make(map[uint64]string)}
}

// PublicID returns the public id of the session with a secret.
func PublicID(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:16]
}

func answer(session string, sequence uint64, code api.Code) *api.Reply {
	return &api.Reply{Session: []byte(session), Sequence: sequence, Code: code}
}

// apply carries out a request and returns the replies, its own first.
func (st *State) apply(req *api.Request, now boottime.Time) []*api.Reply {
	id := string(req.Session)
	s := st.Sessions[id]
	if open := req.GetOpen(); open != nil && s == nil {
		s = &Session{open: open, ttl: time.Duration(open.TtlNs), answers: make(map[uint64]*api.Reply), claims: make(map[uint64]*Claim)}
		st.Sessions[id] = s
		st.Opened++
	}
	if s == nil {
		return []*api.Reply{answer(id, req.Sequence, api.Code_CODE_SESSION_GONE)}
	}
	if req.GetOpen() != nil || req.GetRenew() != nil {
		s.until = max(s.until, now.Add(s.ttl))
		rep := answer(id, req.Sequence, api.Code_CODE_OK)
		rep.RemainingNs, rep.Id = int64(s.ttl), PublicID(id)
		for _, seq := range slices.Sorted(maps.Keys(s.claims)) {
			if s.claims[seq].revoked {
				rep.Revoked = append(rep.Revoked, seq)
			}
		}
		return []*api.Reply{rep}
	}
	s.low = max(s.low, req.Low)
	maps.DeleteFunc(s.answers, func(seq uint64, _ *api.Reply) bool { return seq < s.low })
	if rep := s.earlier(req); rep != nil {
		return []*api.Reply{rep}
	}
	replies := st.carryOut(id, s, req)
	s.answers[req.Sequence] = replies[0]
	st.Most = max(st.Most, len(s.answers))
	return replies
}

// earlier returns the answer to a request that comes again, or nil.
func (s *Session) earlier(req *api.Request) *api.Reply {
	if c := s.claims[req.Sequence]; c != nil && req.GetAcquire() != nil {
		return c.reply()
	}
	if rep := s.answers[req.Sequence]; rep != nil {
		return rep
	}
	if req.Sequence < s.low {
		return answer(string(req.Session), req.Sequence, api.Code_CODE_STALE)
	}
	return nil
}

func (c *Claim) reply() *api.Reply {
	rep := answer(c.Session, c.sequence, api.Code_CODE_QUEUED)
	if rep.Fence = c.fence; c.fence != 0 {
		rep.Code, rep.Floor = api.Code_CODE_OK, c.fence
	}
	return rep
}

func (st *State) carryOut(id string, s *Session, req *api.Request) []*api.Reply {
	own := answer(id, req.Sequence, api.Code_CODE_OK)
	switch op := req.Op.(type) {
	case *api.Request_Close:
		st.Closed++
		return append([]*api.Reply{own}, st.end(id)...)
	case *api.Request_Acquire:
		return []*api.Reply{st.acquire(id, s, req.Sequence, op.Acquire)}
	case *api.Request_Release:
		c := s.claims[op.Release.Hold]
		if c == nil || c.fence == 0 {
			own.Code = api.Code_CODE_NOT_HELD
			return []*api.Reply{own}
		}
		return append([]*api.Reply{own}, st.remove(c)...)
	case *api.Request_Cancel:
		return st.cancel(own, s, op.Cancel.Hold)
	case *api.Request_Update:
		if c := s.claims[op.Update.Hold]; c == nil || c.fence == 0 {
			own.Code = api.Code_CODE_NOT_HELD
		} else {
			c.value = op.Update.Value
		}
	case *api.Request_Revoke:
		return st.revoke(own, op.Revoke)
	}
	return []*api.Reply{own}
}

// revoke asks the holder to leave.
func (st *State) revoke(own *api.Reply, r *api.Revoke) []*api.Reply {
	res := st.Resources[r.Class.String()+r.Name]
	if res == nil {
		own.Code = api.Code_CODE_NOT_FOUND
		return []*api.Reply{own}
	}
	c := res.Queue[0]
	c.revoked, own.Fence = true, c.fence
	if st.Quiet {
		return []*api.Reply{own}
	}
	told := answer(c.Session, c.sequence, api.Code_CODE_REVOKED)
	told.Message, told.Fence = r.Reason, c.fence
	return []*api.Reply{own, told}
}

func (st *State) cancel(own *api.Reply, s *Session, hold uint64) []*api.Reply {
	c := s.claims[hold]
	if c == nil {
		if s.answers[hold] == nil {
			s.answers[hold] = answer(string(own.Session), hold, api.Code_CODE_CANCELLED)
		}
		return []*api.Reply{own}
	}
	if own.Fence = c.fence; c.fence != 0 {
		return []*api.Reply{own}
	}
	st.remove(c)
	return []*api.Reply{own, answer(c.Session, c.sequence, api.Code_CODE_CANCELLED)}
}

func (st *State) acquire(id string, s *Session, sequence uint64, acquire *api.Acquire) *api.Reply {
	if st.Guard != nil && acquire.Class == api.Class_CLASS_LOCK {
		if g := st.Guard(acquire.Name); g != nil {
			rep := answer(id, sequence, api.Code_CODE_MOVED)
			rep.Guard = g
			return rep
		}
	}
	key := acquire.Class.String() + acquire.Name
	res := st.Resources[key]
	if res == nil {
		res = &Resource{key: key}
		st.Resources[key] = res
	}
	if len(res.Queue) > 0 && acquire.Try {
		rep := answer(id, sequence, api.Code_CODE_HELD)
		rep.Holder = st.holder(res.Queue[0])
		return rep
	}
	c := &Claim{Session: id, sequence: sequence, acquire: acquire, value: acquire.Value}
	s.claims[sequence] = c
	if res.Queue = append(res.Queue, c); len(res.Queue) == 1 {
		st.grant(c)
	}
	return c.reply()
}

func (st *State) grant(c *Claim) {
	st.Fence++
	c.fence = st.Fence
	st.granted[c.fence] = c.Session
}

// Secret returns the secret of the session to which a fence was granted, or "".
func (st *State) Secret(fence uint64) string { return st.granted[fence] }

// Claims returns the secrets of the sessions that hold or wait for a lock, in order.
func (st *State) Claims(name string) (secrets []string) {
	if res := st.Resources[api.Class_CLASS_LOCK.String()+name]; res != nil {
		for _, c := range res.Queue {
			secrets = append(secrets, c.Session)
		}
	}
	return secrets
}

func (st *State) holder(c *Claim) *api.Holder {
	open := st.Sessions[c.Session].open
	return &api.Holder{
		Session: []byte(c.Session), Sequence: c.sequence, Fence: c.fence, SinceUnixNs: 1e18,
		Host: open.Host, Pid: open.Pid, Program: open.Program, Value: c.value,
	}
}

// remove takes a claim off its resource and grants to the next.
func (st *State) remove(c *Claim) []*api.Reply {
	res := st.Resources[c.acquire.Class.String()+c.acquire.Name]
	res.Queue = slices.DeleteFunc(res.Queue, func(o *Claim) bool { return o == c })
	s := st.Sessions[c.Session]
	delete(s.claims, c.sequence)
	if c.sequence >= s.low {
		s.answers[c.sequence] = answer(c.Session, c.sequence, api.Code_CODE_STALE)
	}
	if len(res.Queue) == 0 {
		delete(st.Resources, res.key)
	} else if next := res.Queue[0]; next.fence == 0 {
		st.grant(next)
		return []*api.Reply{next.reply()}
	}
	return nil
}

// end removes a session and all its claims.
func (st *State) end(id string) []*api.Reply {
	var replies []*api.Reply
	s := st.Sessions[id]
	for _, seq := range slices.Sorted(maps.Keys(s.claims)) {
		c := s.claims[seq]
		if c.fence == 0 {
			replies = append(replies, answer(id, seq, api.Code_CODE_SESSION_GONE))
		}
		replies = append(replies, st.remove(c)...)
	}
	delete(st.Sessions, id)
	return slices.DeleteFunc(replies, func(r *api.Reply) bool { return string(r.Session) == id && r.Fence != 0 })
}

func (st *State) list(req *api.ListRequest, page int) *api.ListResponse {
	class := req.Class.String()
	out := &api.ListResponse{}
	for _, key := range slices.Sorted(maps.Keys(st.Resources)) {
		name, of := strings.CutPrefix(key, class)
		if !of || !strings.HasPrefix(name, req.Prefix) || name <= req.After {
			continue
		}
		if len(out.Resources) == page {
			out.More = true
			break
		}
		res := st.Resources[key]
		out.Resources = append(out.Resources, &api.Resource{
			Name: name, Class: req.Class, Limit: 1, Holders: []*api.Holder{st.holder(res.Queue[0])}, QueueLength: uint32(len(res.Queue) - 1),
		})
	}
	return out
}

func (st *State) listSessions(req *api.SessionsRequest, page int) *api.SessionsResponse {
	out := &api.SessionsResponse{}
	byID := func(a, b string) int { return bytes.Compare(PublicID(a), PublicID(b)) }
	for _, secret := range slices.SortedFunc(maps.Keys(st.Sessions), byID) {
		id := PublicID(secret)
		if bytes.Compare(id, req.After) <= 0 {
			continue
		}
		if len(out.Sessions) == page {
			out.More = true
			break
		}
		s := st.Sessions[secret]
		out.Sessions = append(out.Sessions, &api.Session{Id: id, TtlNs: int64(s.ttl), Pid: s.open.Pid, Program: s.open.Program})
	}
	return out
}

func (st *State) observe(name string) *api.Observation {
	obs := &api.Observation{Name: name}
	if res := st.Resources[api.Class_CLASS_ELECTION.String()+name]; res != nil {
		obs.Elected, obs.Leader = true, st.holder(res.Queue[0])
	}
	return obs
}

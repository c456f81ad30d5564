package conclave

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

// state is what the servers of a fake cluster agree on: the protocol's rules
// for sessions, queues and fences, in their plainest form.
type state struct {
	fence     uint64
	sessions  map[string]*fakeSession
	resources map[string]*fakeResource // by class and name
	// guard returns what guards a lock if it is not taken here, or nil.
	guard func(name string) *api.Guard
	// most is the largest number of answers that a session ever had to keep.
	most int
	// opened counts sessions ever made, applied requests carried out by kind.
	opened int
	closed int
	// quiet means that only renewals report a revocation.
	quiet bool
}

type fakeSession struct {
	open    *api.Open
	ttl     time.Duration
	until   boottime.Time
	low     uint64
	answers map[uint64]*api.Reply
	claims  map[uint64]*claim
}

type claim struct {
	session  string
	sequence uint64
	acquire  *api.Acquire
	value    []byte
	fence    uint64 // 0 while it waits
	revoked  bool
}

// fakeResource has its holder first, then the queue.
type fakeResource struct {
	key   string
	queue []*claim
}

func newState() *state {
	return &state{sessions: make(map[string]*fakeSession), resources: make(map[string]*fakeResource)}
}

// publicOf returns the public id of the session with a secret.
func publicOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:16]
}

func answer(session string, sequence uint64, code api.Code) *api.Reply {
	return &api.Reply{Session: []byte(session), Sequence: sequence, Code: code}
}

// apply carries out a request and returns the replies, its own first.
func (st *state) apply(req *api.Request, now boottime.Time) []*api.Reply {
	id := string(req.Session)
	s := st.sessions[id]
	if open := req.GetOpen(); open != nil && s == nil {
		s = &fakeSession{open: open, ttl: time.Duration(open.TtlNs), answers: make(map[uint64]*api.Reply), claims: make(map[uint64]*claim)}
		st.sessions[id] = s
		st.opened++
	}
	if s == nil {
		return []*api.Reply{answer(id, req.Sequence, api.Code_CODE_SESSION_GONE)}
	}
	if req.GetOpen() != nil || req.GetRenew() != nil {
		s.until = max(s.until, now.Add(s.ttl))
		rep := answer(id, req.Sequence, api.Code_CODE_OK)
		rep.RemainingNs, rep.Id = int64(s.ttl), publicOf(id)
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
	st.most = max(st.most, len(s.answers))
	return replies
}

// earlier returns the answer to a request that comes again, or nil.
func (s *fakeSession) earlier(req *api.Request) *api.Reply {
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

func (c *claim) reply() *api.Reply {
	rep := answer(c.session, c.sequence, api.Code_CODE_QUEUED)
	if rep.Fence = c.fence; c.fence != 0 {
		rep.Code, rep.Floor = api.Code_CODE_OK, c.fence
	}
	return rep
}

func (st *state) carryOut(id string, s *fakeSession, req *api.Request) []*api.Reply {
	own := answer(id, req.Sequence, api.Code_CODE_OK)
	switch op := req.Op.(type) {
	case *api.Request_Close:
		st.closed++
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
func (st *state) revoke(own *api.Reply, r *api.Revoke) []*api.Reply {
	res := st.resources[r.Class.String()+r.Name]
	if res == nil {
		own.Code = api.Code_CODE_NOT_FOUND
		return []*api.Reply{own}
	}
	c := res.queue[0]
	c.revoked, own.Fence = true, c.fence
	if st.quiet {
		return []*api.Reply{own}
	}
	told := answer(c.session, c.sequence, api.Code_CODE_REVOKED)
	told.Message, told.Fence = r.Reason, c.fence
	return []*api.Reply{own, told}
}

func (st *state) cancel(own *api.Reply, s *fakeSession, hold uint64) []*api.Reply {
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
	return []*api.Reply{own, answer(c.session, c.sequence, api.Code_CODE_CANCELLED)}
}

func (st *state) acquire(id string, s *fakeSession, sequence uint64, acquire *api.Acquire) *api.Reply {
	if st.guard != nil && acquire.Class == api.Class_CLASS_LOCK {
		if g := st.guard(acquire.Name); g != nil {
			rep := answer(id, sequence, api.Code_CODE_MOVED)
			rep.Guard = g
			return rep
		}
	}
	key := acquire.Class.String() + acquire.Name
	res := st.resources[key]
	if res == nil {
		res = &fakeResource{key: key}
		st.resources[key] = res
	}
	if len(res.queue) > 0 && acquire.Try {
		rep := answer(id, sequence, api.Code_CODE_HELD)
		rep.Holder = st.holder(res.queue[0])
		return rep
	}
	c := &claim{session: id, sequence: sequence, acquire: acquire, value: acquire.Value}
	s.claims[sequence] = c
	if res.queue = append(res.queue, c); len(res.queue) == 1 {
		st.grant(c)
	}
	return c.reply()
}

func (st *state) grant(c *claim) {
	st.fence++
	c.fence = st.fence
}

func (st *state) holder(c *claim) *api.Holder {
	open := st.sessions[c.session].open
	return &api.Holder{
		Session: []byte(c.session), Sequence: c.sequence, Fence: c.fence, SinceUnixNs: 1e18,
		Host: open.Host, Pid: open.Pid, Program: open.Program, Value: c.value,
	}
}

// remove takes a claim off its resource and grants to the next.
func (st *state) remove(c *claim) []*api.Reply {
	res := st.resources[c.acquire.Class.String()+c.acquire.Name]
	res.queue = slices.DeleteFunc(res.queue, func(o *claim) bool { return o == c })
	s := st.sessions[c.session]
	delete(s.claims, c.sequence)
	if c.sequence >= s.low {
		s.answers[c.sequence] = answer(c.session, c.sequence, api.Code_CODE_STALE)
	}
	if len(res.queue) == 0 {
		delete(st.resources, res.key)
	} else if next := res.queue[0]; next.fence == 0 {
		st.grant(next)
		return []*api.Reply{next.reply()}
	}
	return nil
}

// end removes a session and all its claims.
func (st *state) end(id string) []*api.Reply {
	var replies []*api.Reply
	s := st.sessions[id]
	for _, seq := range slices.Sorted(maps.Keys(s.claims)) {
		c := s.claims[seq]
		if c.fence == 0 {
			replies = append(replies, answer(id, seq, api.Code_CODE_SESSION_GONE))
		}
		replies = append(replies, st.remove(c)...)
	}
	delete(st.sessions, id)
	return slices.DeleteFunc(replies, func(r *api.Reply) bool { return string(r.Session) == id && r.Fence != 0 })
}

func (st *state) list(req *api.ListRequest, page int) *api.ListResponse {
	class := req.Class.String()
	out := &api.ListResponse{}
	for _, key := range slices.Sorted(maps.Keys(st.resources)) {
		name, of := strings.CutPrefix(key, class)
		if !of || !strings.HasPrefix(name, req.Prefix) || name <= req.After {
			continue
		}
		if len(out.Resources) == page {
			out.More = true
			break
		}
		res := st.resources[key]
		out.Resources = append(out.Resources, &api.Resource{
			Name: name, Class: req.Class, Limit: 1, Holders: []*api.Holder{st.holder(res.queue[0])}, QueueLength: uint32(len(res.queue) - 1),
		})
	}
	return out
}

func (st *state) listSessions(req *api.SessionsRequest, page int) *api.SessionsResponse {
	out := &api.SessionsResponse{}
	byID := func(a, b string) int { return bytes.Compare(publicOf(a), publicOf(b)) }
	for _, secret := range slices.SortedFunc(maps.Keys(st.sessions), byID) {
		id := publicOf(secret)
		if bytes.Compare(id, req.After) <= 0 {
			continue
		}
		if len(out.Sessions) == page {
			out.More = true
			break
		}
		s := st.sessions[secret]
		out.Sessions = append(out.Sessions, &api.Session{Id: id, TtlNs: int64(s.ttl), Pid: s.open.Pid, Program: s.open.Program})
	}
	return out
}

func (st *state) observe(name string) *api.Observation {
	obs := &api.Observation{Name: name}
	if res := st.resources[api.Class_CLASS_ELECTION.String()+name]; res != nil {
		obs.Elected, obs.Leader = true, st.holder(res.queue[0])
	}
	return obs
}

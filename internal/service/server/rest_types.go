package server

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/clocks"
)

// valueJSON is the value of a candidate: as text if it is UTF-8, otherwise in base64.
type valueJSON struct {
	Value       *string `json:"value,omitempty"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
}

func valueToJSON(value []byte) valueJSON {
	if len(value) == 0 {
		return valueJSON{}
	}
	if text := string(value); utf8.ValidString(text) {
		return valueJSON{Value: &text}
	}
	return valueJSON{ValueBase64: value}
}

func (v valueJSON) bytes() []byte {
	if v.Value != nil {
		return []byte(*v.Value)
	}
	return v.ValueBase64
}

type holderJSON struct {
	SessionID sessionID `json:"session_id"`
	Owner     string    `json:"owner,omitempty"`
	Hold      bigNumber `json:"hold"`
	Fence     bigNumber `json:"fence"`
	Since     time.Time `json:"since"`
	Host      string    `json:"host"`
	PID       int64     `json:"pid"`
	Program   string    `json:"program"`
	valueJSON
	Shared   bool   `json:"shared,omitempty"`
	Priority int64  `json:"priority,omitempty"`
	Revoked  bool   `json:"revoked,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

func holderToJSON(h *api.Holder) *holderJSON {
	return &holderJSON{
		SessionID: h.GetSession(), Owner: h.GetOwner(), Hold: bigNumber(h.GetSequence()), Fence: bigNumber(h.GetFence()),
		Since: wallClock(h.GetSinceUnixNs()), Host: h.GetHost(), PID: h.GetPid(), Program: h.GetProgram(),
		valueJSON: valueToJSON(h.GetValue()), Shared: h.GetShared(), Priority: h.GetPriority(),
		Revoked: h.GetRevoked(), Reason: h.GetReason(),
	}
}

// listed translates the values of a list. Without any the result is an empty list in JSON, not null.
func listed[A, B any](list []A, translate func(A) B) []B {
	all := make([]B, 0, len(list))
	for _, one := range list {
		all = append(all, translate(one))
	}
	return all
}

func bigNumbers(numbers []uint64) []bigNumber {
	return listed(numbers, func(n uint64) bigNumber { return bigNumber(n) })
}

func wallClock(ns int64) time.Time { return time.Unix(0, ns).UTC() }

type waiterJSON struct {
	SessionID sessionID `json:"session_id"`
	Owner     string    `json:"owner,omitempty"`
	Since     time.Time `json:"since"`
	Host      string    `json:"host"`
	PID       int64     `json:"pid"`
	Program   string    `json:"program"`
	valueJSON
	Shared   bool  `json:"shared,omitempty"`
	Priority int64 `json:"priority,omitempty"`
}

type resourceJSON struct {
	Name        string        `json:"name"`
	Limit       uint32        `json:"limit"`
	Holders     []*holderJSON `json:"holders"`
	Waiters     []waiterJSON  `json:"waiters"`
	QueueLength uint32        `json:"queue_length"`
	Guard       string        `json:"guard,omitempty"`
}

func resourceToJSON(r *api.Resource) resourceJSON {
	return resourceJSON{
		Name: r.GetName(), Limit: r.GetLimit(), QueueLength: r.GetQueueLength(), Guard: r.GetGuard(),
		Holders: listed(r.GetHolders(), holderToJSON), Waiters: listed(r.GetWaiters(), waiterToJSON),
	}
}

func waiterToJSON(w *api.Waiter) waiterJSON {
	return waiterJSON{
		w.GetSession(), w.GetOwner(), wallClock(w.GetSinceUnixNs()), w.GetHost(), w.GetPid(), w.GetProgram(),
		valueToJSON(w.GetValue()), w.GetShared(), w.GetPriority(),
	}
}

// endedJSON is a hold that has ended.
type endedJSON struct {
	Fence   bigNumber `json:"fence"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	Host    string    `json:"host"`
	PID     int64     `json:"pid"`
	Program string    `json:"program"`
	How     string    `json:"how"`
	Reason  string    `json:"reason,omitempty"`
	Owner   string    `json:"owner,omitempty"`
	By      string    `json:"by,omitempty"`
}

// explanationJSON describes a resource with its holders, waiters and history.
type explanationJSON struct {
	Held *resourceJSON `json:"held,omitempty"`
	Past []endedJSON   `json:"past"`
	// Guard is the algorithm that guards the resource, and Homes what each member says.
	Guard *namespaceJSON `json:"guard,omitempty"`
	Homes []atHomeJSON   `json:"homes,omitempty"`
}

// namespaceJSON is a prefix that an algorithm guards.
type namespaceJSON struct {
	Prefix    string `json:"prefix"`
	Algorithm string `json:"algorithm"`
}

// atHomeJSON is what one server says about a guarded lock.
type atHomeJSON struct {
	Server      uint64 `json:"server"`
	Held        bool   `json:"held"`
	QueueLength uint32 `json:"queue_length"`
	Problem     string `json:"problem,omitempty"`
}

func explanationToJSON(e *api.ExplainResponse) explanationJSON {
	body := explanationJSON{
		Homes: listed(e.GetHomes(), func(h *api.AtHome) atHomeJSON {
			return atHomeJSON{h.GetServer(), len(h.GetResource().GetHolders()) > 0, h.GetResource().GetQueueLength(), h.GetProblem()}
		}),
		Past: listed(e.GetPast(), func(p *api.Ended) endedJSON {
			return endedJSON{
				bigNumber(p.GetFence()), wallClock(p.GetSinceUnixNs()), wallClock(p.GetUntilUnixNs()), p.GetHost(), p.GetPid(), p.GetProgram(),
				strings.ToLower(strings.TrimPrefix(p.GetHow().String(), "ENDING_")), p.GetReason(), p.GetOwner(), p.GetBy(),
			}
		}),
	}
	if e.GetResource() != nil {
		held := resourceToJSON(e.GetResource())
		body.Held = &held
	}
	if g := e.GetGuard(); g != nil {
		body.Guard = &namespaceJSON{g.GetPrefix(), g.GetAlgorithm()}
	}
	return body
}

type sessionJSON struct {
	SessionID sessionID `json:"session_id"`
	Owner     string    `json:"owner,omitempty"`
	Leaving   bool      `json:"leaving,omitempty"`
	TTL       spanJSON  `json:"ttl"`
	Remaining spanJSON  `json:"remaining,omitempty"`
	Opened    time.Time `json:"opened"`
	Host      string    `json:"host"`
	PID       int64     `json:"pid"`
	Program   string    `json:"program"`
	Holds     uint32    `json:"holds"`
	Waits     uint32    `json:"waits"`
	// Home is the server that keeps the session by itself, absent if it is in the registry.
	Home uint64 `json:"home,omitempty"`
}

type memberJSON struct {
	ID            uint64    `json:"id"`
	PeerAddress   string    `json:"peer_address"`
	ClientAddress string    `json:"client_address"`
	Voter         bool      `json:"voter"`
	Leader        bool      `json:"leader"`
	Connected     bool      `json:"connected"`
	MatchIndex    bigNumber `json:"match_index"`
	Learner       bool      `json:"learner"`
	Behind        bigNumber `json:"behind"`
	// Stage is settled, reserved, joining or leaving.
	Stage string `json:"stage"`
}

// statusJSON is the status of a server, and of the cluster as the server sees it.
type statusJSON struct {
	Cluster       string       `json:"cluster"`
	Server        uint64       `json:"server"`
	Leader        uint64       `json:"leader"`
	Term          bigNumber    `json:"term"`
	CommitIndex   bigNumber    `json:"commit_index"`
	AppliedIndex  bigNumber    `json:"applied_index"`
	SnapshotIndex bigNumber    `json:"snapshot_index"`
	Members       []memberJSON `json:"members,omitempty"`
	Sessions      uint64       `json:"sessions"`
	Locks         uint64       `json:"locks"`
	Elections     uint64       `json:"elections"`
	Waiters       uint64       `json:"waiters"`
	Fence         bigNumber    `json:"fence"`
	Version       string       `json:"version"`
	Uptime        spanJSON     `json:"uptime"`
	LeaderSince   time.Time    `json:"leader_since,omitzero"`
	StateBytes    uint64       `json:"state_bytes"`
	StateLimit    uint64       `json:"state_limit_bytes"`
	Figures       *figuresJSON `json:"figures,omitempty"` // nil of a release that has none
	Level         uint32       `json:"level"`             // of the formats of the cluster
	Home          *homeJSON    `json:"home,omitempty"`    // nil if no algorithm guards a lock
	Clocks        []clockJSON  `json:"clocks"`            // of other servers
}

func statusToJSON(st *api.StatusResponse) *statusJSON {
	body := &statusJSON{
		Cluster: st.GetCluster(), Server: st.GetServer(), Leader: st.GetLeader(), Term: bigNumber(st.GetTerm()),
		CommitIndex: bigNumber(st.GetCommitIndex()), AppliedIndex: bigNumber(st.GetAppliedIndex()),
		SnapshotIndex: bigNumber(st.GetSnapshotIndex()),
		Sessions:      st.GetSessions(), Locks: st.GetLocks(), Elections: st.GetElections(), Waiters: st.GetWaiters(),
		Fence: bigNumber(st.GetFence()), Version: st.GetVersion(),
		Uptime:     spanJSON(time.Duration(st.GetUptimeNs()).Round(time.Millisecond)),
		StateBytes: st.GetStateBytes(), StateLimit: st.GetStateLimitBytes(),
		Members: membersJSON(st.GetMembers()), Figures: figuresToJSON(st.GetFigures()), Level: st.GetLevel(), Home: homeToJSON(st.GetHome()), Clocks: listed(st.GetClocks(), clockToJSON),
	}
	if since := st.GetLeaderSinceUnixNs(); since != 0 {
		body.LeaderSince = wallClock(since)
	}
	return body
}

// figuresJSON has the counters and sizes of one server. Counters are JSON numbers, because
// none reaches 2^53.
type figuresJSON struct {
	Requests      uint64 `json:"requests"`
	Replies       uint64 `json:"replies"`
	Exhausted     uint64 `json:"exhausted"`
	Fsyncs        uint64 `json:"fsyncs"`
	Snapshots     uint64 `json:"snapshots"`
	LeaderChanges uint64 `json:"leader_changes"`
	Pending       uint64 `json:"pending"`
	Streams       uint64 `json:"streams"`
	Watches       uint64 `json:"watches"`
	DiskBytes     uint64 `json:"disk_bytes"`
	LogBytes      uint64 `json:"log_bytes"`
	Stalled       string `json:"stalled,omitempty"`
	// Latencies are pairs of an upper bound in us and a number of requests.
	Latencies [][2]uint64 `json:"latencies"`
}

func figuresToJSON(f *api.Figures) *figuresJSON {
	if f == nil {
		return nil
	}
	return &figuresJSON{
		Requests: f.GetRequests(), Replies: f.GetReplies(), Exhausted: f.GetExhausted(), Fsyncs: f.GetFsyncs(),
		Snapshots: f.GetSnapshots(), LeaderChanges: f.GetLeaderChanges(), Pending: f.GetPending(),
		Streams: f.GetStreams(), Watches: f.GetWatches(), DiskBytes: f.GetDiskBytes(), LogBytes: f.GetLogBytes(),
		Stalled:   f.GetStalled(),
		Latencies: listed(f.GetLatencies(), func(l *api.Latency) [2]uint64 { return [2]uint64{l.GetAtMostUs(), l.GetCount()} }),
	}
}

type electionJSON struct {
	Name    string      `json:"name"`
	Elected bool        `json:"elected"`
	Leader  *holderJSON `json:"leader,omitempty"`
}

func electionToJSON(o *api.Observation) electionJSON {
	body := electionJSON{Name: o.GetName(), Elected: o.GetElected()}
	if o.GetElected() {
		body.Leader = holderToJSON(o.GetLeader())
	}
	return body
}

// resourceName names a lock or an election: the field that is set says which.
type resourceName struct {
	Lock     string `json:"lock,omitempty"`
	Election string `json:"election,omitempty"`
}

func nameOf(class api.Class, name string) resourceName {
	if class == api.Class_CLASS_ELECTION {
		return resourceName{Election: name}
	}
	return resourceName{Lock: name}
}

// keptJSON names a hold.
type keptJSON struct {
	resourceName
	Fence bigNumber `json:"fence"`
}

type keepsJSON []keptJSON

func (keeps keepsJSON) message() (message []*api.Kept, err error) {
	for _, k := range keeps {
		kept := &api.Kept{Name: k.Lock, Fence: uint64(k.Fence)}
		if (k.Lock == "") == (k.Election == "") {
			return nil, malformed("keeps: name either a lock or an election")
		}
		if k.Election != "" {
			kept.Class, kept.Name = api.Class_CLASS_ELECTION, k.Election
		}
		message = append(message, kept)
	}
	return message, nil
}

// dependencyJSON is a waiter, and the hold that it waits for.
type dependencyJSON struct {
	Waiter waiterJSON `json:"waiter"`
	resourceName
	Holder *holderJSON `json:"holder"`
}

func dependencyToJSON(d *api.Dependency) dependencyJSON {
	return dependencyJSON{waiterToJSON(d.GetWaiter()), nameOf(d.GetClass(), d.GetName()), holderToJSON(d.GetHolder())}
}

// waitingJSON is a waiter that keeps other holds meanwhile.
type waitingJSON struct {
	Waiter waiterJSON `json:"waiter"`
	resourceName
	Holders     []*holderJSON `json:"holders"`
	HolderCount uint32        `json:"holder_count"`
	Keeps       keepsJSON     `json:"keeps"`
}

func waitingToJSON(w *api.Waiting) waitingJSON {
	body := waitingJSON{Waiter: waiterToJSON(w.GetWaiter()), resourceName: nameOf(w.GetClass(), w.GetName()), HolderCount: w.GetHolderCount()}
	for _, h := range w.GetHolders() {
		body.Holders = append(body.Holders, holderToJSON(h))
	}
	for _, k := range w.GetKeeps() {
		body.Keeps = append(body.Keeps, keptJSON{nameOf(k.GetClass(), k.GetName()), bigNumber(k.GetFence())})
	}
	return body
}

// clocksOf returns what this server knows of the clocks of others.
func clocksOf(all []clocks.Estimate) (list []*api.Clock) {
	for i := range all {
		e := &all[i]
		list = append(list, &api.Clock{
			Server: e.Server, OffsetNs: e.Offset, ErrorNs: e.Error, Drift: e.Drift, DriftError: e.DriftError, OverNs: e.Over, Notable: e.Notable(),
		})
	}
	return list
}

// clockJSON is the clock of another server. Drift is how much faster it runs, 0.01 for one
// percent, if known.
type clockJSON struct {
	Server     uint64   `json:"server"`
	Offset     spanJSON `json:"offset"`
	Error      spanJSON `json:"error"`
	Drift      *float64 `json:"drift,omitempty"`
	DriftError *float64 `json:"drift_error,omitempty"`
	Over       spanJSON `json:"over,omitempty"`
	Notable    bool     `json:"notable,omitempty"`
}

func clockToJSON(c *api.Clock) clockJSON {
	body := clockJSON{Server: c.GetServer(), Offset: spanJSON(c.GetOffsetNs()), Error: spanJSON(c.GetErrorNs()), Over: spanJSON(c.GetOverNs()), Notable: c.GetNotable()}
	if c.GetOverNs() > 0 {
		body.Drift, body.DriftError = &c.Drift, &c.DriftError
	}
	return body
}

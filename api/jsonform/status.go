package jsonform

import (
	"strings"
	"time"

	"github.com/conclave-io/conclave/api"
)

// Member is a server of the cluster.
type Member struct {
	ID            uint64 `json:"id"`
	PeerAddress   string `json:"peer_address"`
	ClientAddress string `json:"client_address"`
	Voter         bool   `json:"voter"`
	Leader        bool   `json:"leader"`
	Connected     bool   `json:"connected"`
	MatchIndex    Uint64 `json:"match_index"`
	Learner       bool   `json:"learner"`
	Behind        Uint64 `json:"behind"`
	// Stage is settled, reserved, joining or leaving.
	Stage string `json:"stage" tstype:"'settled' | 'reserved' | 'joining' | 'leaving'"`
	// CopyAddress is the address of a process that was refused lately because it runs with the
	// data of this member while another one does, and CopyRefused is when.
	CopyAddress string    `json:"copy_address,omitempty"`
	CopyRefused time.Time `json:"copy_refused,omitzero"`
}

// MemberOf returns the form of a member.
func MemberOf(m *api.Member) Member {
	form := Member{
		ID: m.GetId(), PeerAddress: m.GetPeerAddress(), ClientAddress: m.GetClientAddress(), Voter: m.GetVoter(), Leader: m.GetLeader(),
		Connected: m.GetConnected(), MatchIndex: Uint64(m.GetMatchIndex()), Learner: m.GetLearner(), Behind: Uint64(m.GetBehind()),
		Stage:       strings.ToLower(strings.TrimPrefix(m.GetStage().String(), "STAGE_")),
		CopyAddress: m.GetCopyAddress(),
	}
	if at := m.GetCopyRefusedUnixNs(); at != 0 {
		form.CopyRefused = time.Unix(0, at).UTC()
	}
	return form
}

// Members are the servers of the cluster as the leader sees them.
type Members struct {
	Cluster string   `json:"cluster"`
	Members []Member `json:"members"`
}

// MembersOf returns the form of the members.
func MembersOf(answer *api.MembersResponse) Members {
	return Members{answer.GetCluster(), each(answer.GetMembers(), MemberOf)}
}

// Status is the status of a server, and of the cluster as the server sees it.
type Status struct {
	Cluster       string    `json:"cluster"`
	Server        uint64    `json:"server"`
	Leader        uint64    `json:"leader"`
	Term          Uint64    `json:"term"`
	CommitIndex   Uint64    `json:"commit_index"`
	AppliedIndex  Uint64    `json:"applied_index"`
	SnapshotIndex Uint64    `json:"snapshot_index"`
	Members       []Member  `json:"members,omitempty"`
	Sessions      uint64    `json:"sessions"`
	Locks         uint64    `json:"locks"`
	Elections     uint64    `json:"elections"`
	Waiters       uint64    `json:"waiters"`
	Fence         Uint64    `json:"fence"`
	Version       string    `json:"version"`
	Uptime        Duration  `json:"uptime"`
	LeaderSince   time.Time `json:"leader_since,omitzero"`
	StateBytes    uint64    `json:"state_bytes"`
	StateLimit    uint64    `json:"state_limit_bytes"`
	Figures       *Figures  `json:"figures,omitempty"` // nil of a release that has none
	Level         uint32    `json:"level"`             // of the formats of the cluster
	Home          *Home     `json:"home,omitempty"`    // nil if no algorithm guards a lock
	Clocks        []Clock   `json:"clocks"`            // of other servers
}

// StatusOf returns the form of a status.
func StatusOf(st *api.StatusResponse) *Status {
	form := &Status{
		Cluster: st.GetCluster(), Server: st.GetServer(), Leader: st.GetLeader(), Term: Uint64(st.GetTerm()),
		CommitIndex: Uint64(st.GetCommitIndex()), AppliedIndex: Uint64(st.GetAppliedIndex()),
		SnapshotIndex: Uint64(st.GetSnapshotIndex()),
		Sessions:      st.GetSessions(), Locks: st.GetLocks(), Elections: st.GetElections(), Waiters: st.GetWaiters(),
		Fence: Uint64(st.GetFence()), Version: st.GetVersion(),
		Uptime:     Duration(time.Duration(st.GetUptimeNs()).Round(time.Millisecond)),
		StateBytes: st.GetStateBytes(), StateLimit: st.GetStateLimitBytes(),
		Members: each(st.GetMembers(), MemberOf), Figures: FiguresOf(st.GetFigures()), Level: st.GetLevel(),
		Home: HomeOf(st.GetHome()), Clocks: each(st.GetClocks(), ClockOf),
	}
	if since := st.GetLeaderSinceUnixNs(); since != 0 {
		form.LeaderSince = wallClock(since)
	}
	return form
}

// Figures has the counters and sizes of one server. Counters are JSON numbers, because
// none reaches 2^53.
type Figures struct {
	Requests      uint64         `json:"requests"`
	Replies       uint64         `json:"replies"`
	Exhausted     uint64         `json:"exhausted"`
	Fsyncs        uint64         `json:"fsyncs"`
	Snapshots     uint64         `json:"snapshots"`
	LeaderChanges uint64         `json:"leader_changes"`
	Pending       uint64         `json:"pending"`
	Streams       uint64         `json:"streams"`
	Watches       uint64         `json:"watches"`
	DiskBytes     uint64         `json:"disk_bytes"`
	LogBytes      uint64         `json:"log_bytes"`
	Stalled       string         `json:"stalled,omitempty"`
	Latencies     []LatencyCount `json:"latencies"`
}

// FiguresOf returns the form of figures, or nil.
func FiguresOf(f *api.Figures) *Figures {
	if f == nil {
		return nil
	}
	return &Figures{
		Requests: f.GetRequests(), Replies: f.GetReplies(), Exhausted: f.GetExhausted(), Fsyncs: f.GetFsyncs(),
		Snapshots: f.GetSnapshots(), LeaderChanges: f.GetLeaderChanges(), Pending: f.GetPending(),
		Streams: f.GetStreams(), Watches: f.GetWatches(), DiskBytes: f.GetDiskBytes(), LogBytes: f.GetLogBytes(),
		Stalled:   f.GetStalled(),
		Latencies: each(f.GetLatencies(), func(l *api.Latency) LatencyCount { return LatencyCount{l.GetAtMostUs(), l.GetCount()} }),
	}
}

// Clock is the clock of another server. Drift is how much faster it runs, 0.01 for one
// percent, if known.
type Clock struct {
	Server     uint64   `json:"server"`
	Offset     Duration `json:"offset"`
	Error      Duration `json:"error"`
	Drift      *float64 `json:"drift,omitempty"`
	DriftError *float64 `json:"drift_error,omitempty"`
	Over       Duration `json:"over,omitempty"`
	Notable    bool     `json:"notable,omitempty"`
}

// ClockOf returns the form of a clock.
func ClockOf(c *api.Clock) Clock {
	form := Clock{Server: c.GetServer(), Offset: Duration(c.GetOffsetNs()), Error: Duration(c.GetErrorNs()), Over: Duration(c.GetOverNs()), Notable: c.GetNotable()}
	if c.GetOverNs() > 0 {
		form.Drift, form.DriftError = &c.Drift, &c.DriftError
	}
	return form
}

// Sample is the state of all servers at one time.
type Sample struct {
	// The status is that of the server that was asked. Its members are as the leader sees
	// them, if the leader answers.
	*Status `tstype:",extends,required"`
	Time    time.Time `json:"time"`
	Servers []Report  `json:"servers"`
}

// Report is the last answer of one server.
type Report struct {
	ID uint64 `json:"id"`
	// At is the time of the answer, absent if there was none. Problem is why there is no
	// newer answer.
	At      time.Time `json:"at,omitzero"`
	Problem string    `json:"problem,omitempty"`
	Status  *Status   `json:"status,omitempty"`
}

// Lack reports that a part of a stream of events is unavailable, and why.
type Lack struct {
	Part    string `json:"part" tstype:"'status' | 'locks' | 'elections'"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Upgrade is what is known of the next level of the formats of a cluster.
type Upgrade struct {
	Level     uint32   `json:"level"`
	Target    uint32   `json:"target"`
	Held      bool     `json:"held"`
	RisesIn   Duration `json:"rises_in"`
	Obstacles []string `json:"obstacles"`
}

// UpgradeOf returns the form of the level of a cluster.
func UpgradeOf(u *api.UpgradeResponse) Upgrade {
	return Upgrade{u.GetLevel(), u.GetTarget(), u.GetHeld(), Duration(u.GetRisesInNs()), texts(u.GetObstacles())}
}

// Settings are the settings of a cluster. After a change that demands a form of names, OtherForms is how
// many names in use have another one, and Others are the first of them.
type Settings struct {
	Settings   []Setting   `json:"settings"`
	Revision   Uint64      `json:"revision"`
	OtherForms Uint64      `json:"other_forms,omitzero"`
	Others     []NameInUse `json:"others,omitempty"`
}

// Setting is a choice that operators make once for all servers. Values are the possible ones, the
// default first.
type Setting struct {
	Name   string   `json:"name"`
	Value  string   `json:"value"`
	Values []string `json:"values"`
	Text   string   `json:"text"`
}

// NameInUse is the name of a lock or an election, or the prefix of a guard.
type NameInUse struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// SettingsOf returns the form of the settings of a cluster.
func SettingsOf(s *api.SettingsResponse) Settings {
	form := Settings{Settings: []Setting{}, Revision: Uint64(s.GetRevision()), OtherForms: Uint64(s.GetOtherForms())}
	for _, one := range s.GetSettings() {
		form.Settings = append(form.Settings, Setting{one.GetName(), one.GetValue(), texts(one.GetValues()), one.GetText()})
	}
	for _, n := range s.GetOthers() {
		form.Others = append(form.Others, NameInUse{n.GetKind(), n.GetName()})
	}
	return form
}

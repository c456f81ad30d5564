package server

import (
	"net/http"
	"path"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/access"
)

// need is what a caller needs for a call if the cluster has rules.
type need struct {
	kind needKind
	verb access.Verb
}

type needKind int

const (
	// unmapped: the call is missing in the table below, so nobody may make it.
	unmapped needKind = iota
	// nothing: not even a proof of identity.
	nothing
	// proof: a proof of identity.
	proof
	// proofUnlessPage: nothing for the files of the web page, which contain nothing about the
	// cluster: a browser cannot send a token before it has the page. Otherwise proof.
	proofUnlessPage
	// byName: proof, and the verb, which is checked later: by the registry when it applies the
	// log, or for each name in an answer.
	byName
	// onCluster: proof, and the verb.
	onCluster
)

var (
	anybody   = need{kind: nothing}
	anyProven = need{kind: proof}
	reading   = need{byName, access.Read}
	// inSession is for requests in a session of the caller, about which the registry decides.
	inSession = need{byName, access.Hold}
	// ofMembers is for changes of the members, which are decided, and recorded, where the log
	// is applied.
	ofMembers = need{byName, access.Members}
)

func needs(verb access.Verb) need { return need{onCluster, verb} }

// method is a gRPC call: what it needs, and its name among the durations in the metrics. Streams that
// last as long as their callers like, and Ping, have none.
type method struct {
	need
	timed string
}

// methods has the gRPC calls.
var methods = map[string]method{
	"Attach":     {inSession, ""},
	"AttachHome": {inSession, ""},
	"Do":         {inSession, "do"},
	"Ping":       {anyProven, ""},
	"Status":     {anyProven, "status"}, // without the verb status it tells only what clients need
	"List":       {reading, "list"},
	"Explain":    {reading, "explain"},
	"Waits":      {reading, "waits"},
	"Watch":      {reading, ""},
	"Observe":    {reading, ""},
	"Sessions":   {needs(access.Sessions), "sessions"},
	// The following byName calls are decided, and recorded, where the log is applied.
	"EndSession":    {need{byName, access.EndSession}, "end_session"},
	"Members":       {needs(access.Status), "members"},
	"ChangeMembers": {ofMembers, "change_members"},
	"Join":          {ofMembers, "join"},
	"Upgrade":       {need{byName, access.Upgrade}, "upgrade"}, // to show the level needs status
	"Access":        {anyProven, "access"},                     // what it asks for decides
	"AuditLog":      {needs(access.Audit), "audit_log"},
	"SetGuard":      {need{byName, access.Members}, "set_guard"},
	"View":          {needs(access.Status), "view"},
	"CallElection":  {needs(access.Members), "call_election"},
	"Cut":           {needs(access.Members), "cut"}, // it has names that the caller may not read
	"Backup":        {needs(access.Backup), "backup"},
}

// needOf returns what a gRPC call needs. For a stream there is no request yet.
func needOf(method string, req any) need {
	switch req := req.(type) {
	case *api.UpgradeRequest:
		if req.GetAction() == api.UpgradeRequest_ACTION_STATUS {
			return needs(access.Status)
		}
	case *api.AccessRequest:
		switch {
		case req.GetShow() != nil || req.GetCheck().GetPrincipal() != "":
			return needs(access.AccessRead)
		case req.GetChange().GetDryRun():
			return needs(access.Access)
		}
	}
	return methods[method].need
}

// served notes the duration of a gRPC call, given the full name of its method.
func (s *Server) served(method string, begun time.Time) {
	if name := methods[path.Base(method)].timed; name != "" {
		s.metrics.Called(name, begun)
	}
}

// countDenial counts the refusal of a call, if err is a refusal by the rules of access.
func (s *Server) countDenial(wanted need, err error) {
	if status.Code(err) == codes.PermissionDenied && wanted.verb != 0 {
		s.metrics.Denied(wanted.verb)
	}
}

// router is a mux that knows what the calls of each pattern need.
type router struct {
	*http.ServeMux
	needs map[string]need
}

func (r *router) HandleFunc(pattern string, wanted need, serve func(http.ResponseWriter, *http.Request)) {
	r.Handle(pattern, wanted, http.HandlerFunc(serve))
}

func (r *router) Handle(pattern string, wanted need, handler http.Handler) {
	r.needs[pattern] = wanted
	r.ServeMux.Handle(pattern, handler)
}

// find returns the pattern that an HTTP call matches, or its method, and what the call needs.
func (r *router) find(req *http.Request) (pattern string, wanted need) {
	if _, pattern = r.Handler(req); pattern == "" { // no such path, or another method: who may know that much
		return req.Method, anyProven
	}
	return pattern, r.needs[pattern]
}

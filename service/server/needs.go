package server

import (
	"cmp"
	"net/http"

	"github.com/conclave-io/conclave/service/access"
	"github.com/conclave-io/conclave/service/api"
)

// need is what a caller needs for a call if the cluster has rules.
type need struct {
	kind needKind
	verb access.Verb
}

type needKind int

const (
	// unmapped: the call is missing in the tables below, so nobody may make it.
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

// methods has the needs of gRPC calls.
var methods = map[string]need{
	"Attach":     inSession,
	"AttachHome": inSession,
	"Do":         inSession,
	"Ping":       anyProven,
	"Status":     anyProven, // without the verb status it tells only what clients need
	"List":       reading,
	"Explain":    reading,
	"Waits":      reading,
	"Watch":      reading,
	"Observe":    reading,
	"Sessions":   needs(access.Sessions),
	// The following byName calls are decided, and recorded, where the log is applied.
	"EndSession":    {byName, access.EndSession},
	"Members":       needs(access.Status),
	"ChangeMembers": ofMembers,
	"Join":          ofMembers,
	"Upgrade":       {byName, access.Upgrade}, // to show the level needs status
	"Access":        anyProven,                // what it asks for decides
	"AuditLog":      needs(access.Audit),
	"SetGuard":      {byName, access.Members},
	"View":          needs(access.Status),
	"CallElection":  needs(access.Members),
	"Cut":           needs(access.Members), // it has names that the caller may not read
	"Backup":        needs(access.Backup),
}

// routes has the needs of HTTP calls, by the patterns of the mux.
var routes = map[string]need{
	"POST /v1/open":                  inSession,
	"POST /v1/renew":                 inSession,
	"POST /v1/close":                 inSession,
	"POST /v1/acquire":               inSession,
	"POST /v1/release":               inSession,
	"POST /v1/campaign":              inSession,
	"POST /v1/update":                inSession,
	"POST /v1/resign":                inSession,
	"POST /v1/transfer":              inSession,
	"POST /v1/revoke":                {byName, access.Revoke},
	"GET /v1/status":                 anyProven,
	"GET /v1/locks":                  reading,
	"GET /v1/elections":              reading,
	"GET /v1/elections/{name}":       reading,
	"GET /v1/elections/{name}/watch": reading,
	"GET /v1/locks/{name}/why":       reading,
	"GET /v1/elections/{name}/why":   reading,
	"GET /v1/waits":                  reading,
	"GET /v1/watch":                  reading, // what it tells of servers needs status
	"GET /v1/watch/locks":            reading,
	"GET /v1/watch/elections":        reading,
	"GET /v1/sessions":               needs(access.Sessions),
	"POST /v1/sessions/{id}/end":     {byName, access.EndSession},
	"GET /v1/upgrade":                needs(access.Status),
	"POST /v1/upgrade":               {byName, access.Upgrade},
	"GET /v1/view":                   needs(access.Status),
	"POST /v1/view/watch":            needs(access.Members),
	"POST /v1/view/elect":            needs(access.Members),
	"GET /v1/cut":                    needs(access.Members),
	"POST /v1/guards":                {byName, access.Members},
	"GET /v1/members":                needs(access.Status),
	"POST /v1/leader":                {byName, access.Members},
	"GET /v1/access/whoami":          anyProven,
	"GET /v1/audit":                  needs(access.Audit),
	"GET /v1/access":                 needs(access.AccessRead),
	"POST /v1/access":                {byName, access.Access}, // decided, and recorded, where the log is applied
	"GET /v1/access/check":           anyProven,               // of somebody else, access-read
	"GET /healthz":                   anybody,
	"GET /readyz":                    anybody,
	"GET /metrics":                   needs(access.Status),
	"GET /v1/{$}":                    anyProven,
	"GET /{$}":                       {kind: proofUnlessPage},
	"/":                              {kind: proofUnlessPage},
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
	return methods[method]
}

// router is a mux that records its patterns.
type router struct {
	*http.ServeMux
	patterns []string
}

func (r *router) HandleFunc(pattern string, serve func(http.ResponseWriter, *http.Request)) {
	r.Handle(pattern, http.HandlerFunc(serve))
}

func (r *router) Handle(pattern string, handler http.Handler) {
	r.patterns = append(r.patterns, pattern)
	r.ServeMux.Handle(pattern, handler)
}

// pattern returns the pattern that an HTTP call matches, or its method.
func (r *router) pattern(req *http.Request) string {
	_, pattern := r.Handler(req)
	return cmp.Or(pattern, req.Method)
}

// needOf returns what an HTTP call needs.
func (r *router) needOf(req *http.Request) need {
	_, pattern := r.Handler(req)
	if pattern == "" { // no such path, or another method: who may know that much
		return anyProven
	}
	return routes[pattern]
}

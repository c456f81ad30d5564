package rest

import (
	"maps"
	"net/http"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/access"
)

// Handler serves HTTP/1.1.
type Handler struct {
	server Server
	cfg    Config
	mux    *http.ServeMux
	needs  map[string]access.Need // by pattern
}

// New returns a handler for a server.
func New(server Server, cfg Config) *Handler {
	h := &Handler{server: server, cfg: cfg, mux: http.NewServeMux(), needs: make(map[string]access.Need)}
	h.addCalls()
	return h
}

// ServeHTTP implements http.Handler. The context of the request has its caller, and what is
// needed for the call has been checked.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// Find returns the pattern that a request matches, or its method, and what the call needs.
func (h *Handler) Find(r *http.Request) (pattern string, wanted access.Need) {
	if _, pattern = h.mux.Handler(r); pattern == "" { // no such path, or another method: who may know that much
		return r.Method, access.AnyProven
	}
	return pattern, h.needs[pattern]
}

// Needs returns what the call of each pattern needs.
func (h *Handler) Needs() map[string]access.Need { return maps.Clone(h.needs) }

func (h *Handler) handle(pattern string, wanted access.Need, serve http.HandlerFunc) {
	h.needs[pattern] = wanted
	h.mux.Handle(pattern, serve)
}

// addCalls adds all calls and what they need.
func (h *Handler) addCalls() {
	const lock, election = api.Class_CLASS_LOCK, api.Class_CLASS_ELECTION
	h.handle("POST /v1/open", access.InSession, h.timed("open", h.postOpen))
	h.handle("POST /v1/renew", access.InSession, h.timed("renew", with(h.postRenew)))
	h.handle("POST /v1/close", access.InSession, h.timed("close", with(h.postClose)))
	h.handle("POST /v1/acquire", access.InSession, h.timed("acquire", with(h.postAcquire)))
	h.handle("POST /v1/release", access.InSession, h.timed("release", with(h.postRelease)))
	h.handle("POST /v1/campaign", access.InSession, h.timed("campaign", with(h.postCampaign)))
	h.handle("POST /v1/update", access.InSession, h.timed("update", with(h.postUpdate)))
	h.handle("POST /v1/resign", access.InSession, h.timed("resign", with(h.postRelease)))
	h.handle("POST /v1/transfer", access.InSession, h.timed("transfer", with(h.postTransfer)))
	h.handle("POST /v1/revoke", access.ByName(access.Revoke), h.timed("revoke", with(h.postRevoke)))
	h.handle("GET /v1/status", access.AnyProven, h.timed("status", h.getStatus))
	h.handle("GET /v1/locks", access.Reading, h.timed("locks", h.getLocks))
	h.handle("GET /v1/elections", access.Reading, h.timed("elections", h.getElections))
	h.handle("GET /v1/elections/{name}", access.Reading, h.timed("election", h.getElection))
	h.handle("GET /v1/elections/{name}/watch", access.Reading, h.watchElection)
	h.handle("GET /v1/locks/{name}/why", access.Reading, h.timed("why", h.getWhy(lock)))
	h.handle("GET /v1/elections/{name}/why", access.Reading, h.timed("why", h.getWhy(election)))
	h.handle("GET /v1/waits", access.Reading, h.timed("waits", h.getWaits))
	h.handle("GET /v1/expect", access.Reading, h.timed("expected", h.getExpected))
	h.handle("POST /v1/expect", access.ByName(access.Members), h.timed("expect", with(h.postExpect)))
	h.handle("GET /v1/watch", access.Reading, h.watchAll) // what it tells of servers needs status
	h.handle("GET /v1/watch/locks", access.Reading, h.watchClass(lock))
	h.handle("GET /v1/watch/elections", access.Reading, h.watchClass(election))
	h.handle("GET /v1/sessions", access.OnCluster(access.Sessions), h.timed("sessions", h.getSessions))
	h.handle("POST /v1/sessions/{id}/end", access.ByName(access.EndSession), h.timed("end_session", with(h.postEndSession)))
	h.addServers()
	h.handle("GET /healthz", access.Anybody, h.cfg.Healthz.ServeHTTP)
	h.handle("GET /readyz", access.Anybody, h.cfg.Readyz.ServeHTTP)
	h.handle("GET /metrics", access.OnCluster(access.Status), h.cfg.Metrics.ServeHTTP)
	h.handle("GET /v1/{$}", access.AnyProven, h.listCalls)
	h.handle("GET /{$}", access.Need{Kind: access.NeedProofUnlessPage}, h.frontPage)
	h.handle("/", access.Need{Kind: access.NeedProofUnlessPage}, h.elsewhere)
}

// addServers adds the calls about the servers themselves.
func (h *Handler) addServers() {
	h.handle("GET /v1/upgrade", access.OnCluster(access.Status), h.timed("upgrade", h.getUpgrade))
	h.handle("POST /v1/upgrade", access.ByName(access.Upgrade), h.timed("upgrade", with(h.postUpgrade)))
	h.handle("GET /v1/settings", access.OnCluster(access.Status), h.timed("settings", h.getSettings))
	h.handle("POST /v1/settings", access.ByName(access.Members), h.timed("set", with(h.postSettings)))
	h.handle("GET /v1/view", access.OnCluster(access.Status), h.timed("view", h.getView))
	h.handle("POST /v1/view/watch", access.OnCluster(access.Members), h.timed("set_watch", with(h.postWatch)))
	h.handle("POST /v1/view/elect", access.OnCluster(access.Members), h.timed("call_election", h.postElect))
	h.handle("GET /v1/cut", access.OnCluster(access.Members), h.timed("cut", h.getCut))
	h.handle("POST /v1/guards", access.ByName(access.Members), h.timed("set_guard", with(h.postGuards)))
	h.handle("GET /v1/members", access.OnCluster(access.Status), h.timed("members", h.getMembers))
	h.handle("POST /v1/leader", access.ByName(access.Members), h.timed("leader", with(h.postLeader)))
	h.handle("GET /v1/access/whoami", access.AnyProven, h.timed("whoami", h.getWhoAmI))
	h.handle("GET /v1/audit", access.OnCluster(access.Audit), h.timed("audit", h.getAudit))
	h.handle("GET /v1/access", access.OnCluster(access.AccessRead), h.timed("access", h.getAccess))
	// A change is decided, and recorded, where the log is applied.
	h.handle("POST /v1/access", access.ByName(access.Access), h.timed("change_access", with(h.postAccess)))
	h.handle("GET /v1/access/check", access.AnyProven, h.timed("check", h.getCheck)) // of somebody else, access-read
}

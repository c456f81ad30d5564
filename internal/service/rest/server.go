package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/service/access"
)

// Server carries out the calls. Its context has the caller.
type Server interface {
	// These are also calls of gRPC.
	List(context.Context, *api.ListRequest) (*api.ListResponse, error)
	Explain(context.Context, *api.ExplainRequest) (*api.ExplainResponse, error)
	Waits(context.Context, *api.WaitsRequest) (*api.WaitsResponse, error)
	Sessions(context.Context, *api.SessionsRequest) (*api.SessionsResponse, error)
	EndSession(context.Context, *api.EndSessionRequest) (*api.EndSessionResponse, error)
	Members(context.Context, *api.MembersRequest) (*api.MembersResponse, error)
	ChangeMembers(context.Context, *api.ChangeMembersRequest) (*api.ChangeMembersResponse, error)
	Upgrade(context.Context, *api.UpgradeRequest) (*api.UpgradeResponse, error)
	Settings(context.Context, *api.SettingsRequest) (*api.SettingsResponse, error)
	Access(context.Context, *api.AccessRequest) (*api.AccessResponse, error)
	SetGuard(context.Context, *api.SetGuardRequest) (*api.SetGuardResponse, error)
	Expect(context.Context, *api.ExpectRequest) (*api.ExpectResponse, error)
	Expected(context.Context, *api.ExpectedRequest) (*api.ExpectedResponse, error)
	View(context.Context, *api.ViewRequest) (*api.ViewResponse, error)
	CallElection(context.Context, *api.CallElectionRequest) (*api.CallElectionResponse, error)
	Cut(context.Context, *api.CutRequest) (*api.CutResponse, error)

	// Perform has a request of a session carried out. The reply reports every failure. A wait
	// bounds how long the request waits in a queue; without one it waits as long as ctx.
	Perform(ctx context.Context, req *api.Request, wait *time.Duration) *api.Reply
	// TakeBack releases what Perform granted to a request, whose number is that of the reply: the caller
	// cannot be told.
	TakeBack(ctx context.Context, req *api.Request)
	// OwnStatus returns the status of this server. It does not need a leader.
	OwnStatus(context.Context) (*api.StatusResponse, error)
	// Sample returns the state of all servers that answer quickly.
	Sample(context.Context) (*jsonform.Sample, error)
	// AnyHome returns a server that can keep sessions for guarded locks.
	AnyHome(context.Context) (uint64, error)
	// AuditLines returns records of the audit log.
	AuditLines(context.Context, *api.AuditLogRequest) ([]jsonform.AuditRecord, error)
	// Follow reports the states of an election until send fails, or no leader is found for some time.
	Follow(ctx context.Context, election string, send func(*api.Observation) error) error
	// Changes reports the holds under a prefix, and then changes, until send fails, or no leader
	// is found for some time.
	Changes(ctx context.Context, req *api.WatchRequest, send func(*api.Changes) error) error

	// Permit returns an error if the caller may not make a call with the given need.
	Permit(context.Context, access.Need) error
	// Called notes that a call has ended, and Refused why it failed.
	Called(call string, begun time.Time)
	Refused(context.Context, error)
	// Ended returns why a stream ends whose context has ended.
	Ended(context.Context) error
	// Go runs a function that the server waits for before it stops.
	Go(func())
}

// Config says what a handler tells about its server, and what it does not serve itself.
type Config struct {
	ID               uint64
	Cluster, Version string
	// IOTimeout is how long a request or an answer may take to be transmitted.
	IOTimeout time.Duration
	// Page serves the web page, if there is one.
	Page http.Handler
	// Healthz, Readyz and Metrics serve what watches over servers.
	Healthz, Readyz, Metrics http.Handler
}

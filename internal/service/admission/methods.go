package admission

import (
	"context"
	"path"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/access"
)

// method is a gRPC call: what it needs, and its name among the durations in the metrics. Streams that
// last as long as their callers like, and Ping, have none.
type method struct {
	access.Need
	timed string
}

// methods has the gRPC calls.
var methods = map[string]method{
	"Attach":     {access.InSession, ""},
	"AttachHome": {access.InSession, ""},
	"Do":         {access.InSession, "do"},
	"Ping":       {access.AnyProven, ""},
	"Status":     {access.AnyProven, "status"}, // without the verb status it tells only what clients need
	"List":       {access.Reading, "list"},
	"Explain":    {access.Reading, "explain"},
	"Waits":      {access.Reading, "waits"},
	"Watch":      {access.Reading, ""},
	"Observe":    {access.Reading, ""},
	"Sessions":   {access.OnCluster(access.Sessions), "sessions"},
	// The following byName calls are decided, and recorded, where the log is applied.
	"EndSession":    {access.ByName(access.EndSession), "end_session"},
	"Members":       {access.OnCluster(access.Status), "members"},
	"ChangeMembers": {access.OfMembers, "change_members"},
	"Join":          {access.OfMembers, "join"},
	"Upgrade":       {access.ByName(access.Upgrade), "upgrade"},  // to show the level needs status
	"Settings":      {access.ByName(access.Members), "settings"}, // to show them needs status
	"Access":        {access.AnyProven, "access"},                // what it asks for decides
	"AuditLog":      {access.OnCluster(access.Audit), "audit_log"},
	"SetGuard":      {access.ByName(access.Members), "set_guard"},
	"Expect":        {access.ByName(access.Members), "expect"},
	"Expected":      {access.Reading, "expected"},
	"View":          {access.OnCluster(access.Status), "view"},
	"CallElection":  {access.OnCluster(access.Members), "call_election"},
	"Cut":           {access.OnCluster(access.Members), "cut"}, // it has names that the caller may not read
	"Backup":        {access.OnCluster(access.Backup), "backup"},
}

// needOf returns what a gRPC call needs. For a stream there is no request yet.
func needOf(method string, req any) access.Need {
	switch req := req.(type) {
	case *api.UpgradeRequest:
		if req.GetAction() == api.UpgradeRequest_ACTION_STATUS {
			return access.OnCluster(access.Status)
		}
	case *api.SettingsRequest:
		if req.GetName() == "" && req.GetValue() == "" {
			return access.OnCluster(access.Status)
		}
	case *api.AccessRequest:
		switch {
		case req.GetShow() != nil || req.GetCheck().GetPrincipal() != "":
			return access.OnCluster(access.AccessRead)
		case req.GetChange().GetDryRun():
			return access.OnCluster(access.Access)
		}
	}
	return methods[method].Need
}

// served notes the duration of a gRPC call, given the full name of its method.
func (g *Gate) served(method string, begun time.Time) {
	if name := methods[path.Base(method)].timed; name != "" {
		g.cfg.Metrics.Called(name, begun)
	}
}

// countDenial counts the refusal of a call, if err is a refusal by the rules of access.
func (g *Gate) countDenial(wanted access.Need, err error) {
	if status.Code(err) == codes.PermissionDenied && wanted.Verb != 0 {
		g.cfg.Metrics.Denied(wanted.Verb)
	}
}

// Refused counts the refusal of an admitted call, if err is a refusal by the rules of access.
func (g *Gate) Refused(ctx context.Context, err error) { g.countDenial(needIn(ctx), err) }

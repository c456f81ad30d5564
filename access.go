package conclave

import (
	"context"

	"github.com/conclave-io/conclave/service/api"
)

// Caller is a program as the servers know it.
type Caller struct {
	// Principal is the name that it has proven, such as "cert:alice"; empty for an
	// anonymous caller.
	Principal string `json:"principal"`
	// Via is how it calls: "grpc", "http", or "local", through the admin socket of a server
	// or from within its process. Remote is from where.
	Via    string `json:"via"`
	Remote string `json:"remote"`
	// Roles are those of the principal.
	Roles []string `json:"roles"`
}

// WhoAmI returns whom this program has proven to be to the servers.
func (c *Client) WhoAmI(ctx context.Context) (who Caller, err error) {
	err = c.ask(ctx, "whoami", func(ctx context.Context, server api.ConclaveClient, _ *api.StatusResponse) error {
		answer, err := server.Access(ctx, &api.AccessRequest{Ask: &api.AccessRequest_WhoAmI{WhoAmI: &api.WhoAmI{}}})
		who = Caller{answer.GetPrincipal(), answer.GetVia(), answer.GetRemote(), answer.GetRoles()}
		return err
	})
	return who, err
}

// Package admin is what operators of a cluster do in Go: its members and their upgrades, the rules
// about who may do what, the audit log, the end of holds and sessions of others, the algorithms
// that guard locks, and backups.
//
//	client, err := conclave.Dial(ctx, conclave.Config{Servers: []string{"unix:/var/lib/conclave/admin.sock"}})
//	...
//	defer client.Close()
//	members, err := admin.New(client).Members(ctx)
//
// The commands of conclave that operate a cluster are written with this package.
//
// # Calls
//
// A call asks one server after the other, the one in use first, until one answers. It tries until
// its ctx ends, or for 10 seconds if ctx has no deadline. If no server has answered by then, the
// error is a *conclave.UnavailableError, which has the result of each server. A change that is
// asked for twice in this way is made once.
//
// # Errors
//
// The errors are those of package conclave. The rules of the cluster decide who may make a call:
// errors.Is(err, conclave.ErrDenied) means that they do not allow it, and
// errors.Is(err, conclave.ErrUnauthenticated) that the servers must know who calls. A call of a
// client that is closed fails with conclave.ErrClosed. All other refusals of a server have its
// words, and no error of their own.
package admin

import (
	"context"

	"google.golang.org/grpc"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client"
)

// Admin administers the cluster to which a client is attached. Its methods may be called by many
// goroutines at once.
type Admin struct{ conn *client.Conn }

// New returns an Admin that makes its calls over the connection of c. It needs no Close. Its calls
// fail once c is closed.
func New(c *conclave.Client) *Admin { return &Admin{client.Of(c)} }

// ask puts a question to one server after the other until one answers it.
func (a *Admin) ask(ctx context.Context, op string, q client.Query) error {
	return a.conn.Failed(op, "", a.conn.Ask(ctx, q))
}

// call sends a request to one server after the other until one answers it.
func call[Request, Answer any](
	ctx context.Context, a *Admin, op string,
	method func(api.ConclaveClient, context.Context, *Request, ...grpc.CallOption) (*Answer, error), req *Request,
) (*Answer, error) {
	answer, err := client.Call(ctx, a.conn, method, req)
	return answer, a.conn.Failed(op, "", err)
}

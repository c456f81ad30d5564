// Package act carries out acts of administration: commands that belong to no session. The log
// decides about them and records them.
package act

import (
	"context"
	"crypto/rand"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// requestHeader has the number of a request without a session that a server passes on. It
// stays one request however often it is passed on.
const requestHeader = "conclave-request-bin"

// OriginOf returns the caller of an act with the number of the request, and the context for
// passing that number on to the leader.
func OriginOf(ctx context.Context) (context.Context, registry.Origin, error) {
	who, err := authn.CallerOf(ctx)
	if err != nil {
		return ctx, registry.Origin{}, status.Error(codes.Unauthenticated, err.Error())
	}
	by := who.Origin()
	by.Request = requestOf(ctx, who)
	return metadata.AppendToOutgoingContext(ctx, requestHeader, string(by.Request[:])), by, nil
}

// requestOf returns the number of a request without a session: the one drawn by the server
// that passed it on, or a new one.
func requestOf(ctx context.Context, who stream.Caller) (request [16]byte) {
	if drawn := metadata.ValueFromIncomingContext(ctx, requestHeader); who.Vouched && len(drawn) == 1 && len(drawn[0]) == len(request) {
		return [16]byte([]byte(drawn[0]))
	}
	rand.Read(request[:]) // never fails: crypto/rand ends the program instead
	return request
}

// CarryOut carries out a command at a node, which leads. The request in its origin identifies
// the outcome.
func CarryOut(ctx context.Context, n *node.Node, command registry.Command) error {
	c := node.NewCall()
	conn, err := n.Connect(ctx, c)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Submit(ctx, []registry.Command{command}); err != nil {
		return err
	}
	select {
	case r := <-c.Replies:
		return Failure(r.Result)
	case <-c.Deposed:
		return node.ErrNotLeader
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Note records an act that has no log entry of its own. It fails if the rules refuse the act.
func Note(ctx context.Context, n *node.Node, by registry.Origin, kind, what string) error {
	return CarryOut(ctx, n, registry.Command{Op: registry.OpNote, Name: kind, Value: what, By: &by})
}

// Failure returns the error of a result that is not OK.
func Failure(r registry.Result) error {
	switch r.Code {
	case registry.OK:
		return nil
	case registry.NotLeader:
		return fmt.Errorf("%w: %s", node.ErrNotLeader, r.Message)
	}
	return status.Error(api.MeaningOf(api.Code(r.Code)).GRPC, r.Message)
}

package server

import (
	"context"
	"crypto/rand"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// requestHeader has the number of a request without a session that a server passes on. It
// stays one request however often it is passed on.
const requestHeader = "conclave-request-bin"

// EndSession ends a session of another client.
func (s service) EndSession(ctx context.Context, req *api.EndSessionRequest) (*api.EndSessionResponse, error) {
	ctx, by, err := originOf(ctx)
	if err != nil {
		return nil, err
	}
	if n := len(req.GetId()); n != stream.SecretSize {
		return nil, status.Errorf(codes.InvalidArgument, "id: %d bytes: the public id of a session has %d", n, stream.SecretSize)
	}
	command := registry.Command{Op: registry.OpEnd, Session: registry.SessionID(req.GetId()), Value: req.GetReason(), By: &by}
	if req.GetHome() && authn.IsForwarded(ctx) { // asked by the leader, which has it on record
		who, _ := authn.CallerOf(ctx)
		if err := s.gate.Permit(ctx, who, access.OnCluster(access.EndSession)); err != nil {
			return nil, err
		}
		return s.endSessionHere(&command)
	}
	return forward.OnLeaderInTime(ctx, s.forward, func(ctx context.Context) (*api.EndSessionResponse, error) {
		err := s.carryOutAlone(ctx, command)
		if status.Code(err) == codes.NotFound { // the log does not know the sessions that homes keep
			return s.endSessionOnRecord(ctx, req, &command, err)
		}
		if err != nil {
			return nil, err
		}
		answer := new(api.EndSessionResponse)
		return answer, s.node.View(ctx, func(r *replica.Replica) {
			left, _ := r.Registry().Session(command.Session)
			answer.Holds = uint32(left.Holds)
		})
	}, forward.Asking(api.ConclaveClient.EndSession, &api.EndSessionRequest{Id: req.GetId(), Reason: req.GetReason()}))
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

// carryOutAlone carries out a command without a session on this server, which leads. The
// request in its origin identifies the outcome.
func (s *Server) carryOutAlone(ctx context.Context, command registry.Command) error {
	c := newCall()
	conn, err := s.node.Connect(ctx, c)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Submit(ctx, []registry.Command{command}); err != nil {
		return err
	}
	select {
	case r := <-c.replies:
		return failureOf(r.Result)
	case <-c.deposed:
		return node.ErrNotLeader
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// failureOf returns the error of a result that is not OK.
func failureOf(r registry.Result) error {
	switch r.Code {
	case registry.OK:
		return nil
	case registry.NotLeader:
		return fmt.Errorf("%w: %s", node.ErrNotLeader, r.Message)
	}
	return status.Error(api.MeaningOf(api.Code(r.Code)).GRPC, r.Message)
}

package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/kit/wait"
	"github.com/conclave-io/conclave/internal/service/certs"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/store"
)

const (
	// joinTimeout is how long a server tries to join.
	joinTimeout = time.Minute
	// joinPause is the time between two attempts.
	joinPause = 250 * time.Millisecond
)

// refusals are the answers that asking again does not change.
var refusals = []codes.Code{codes.InvalidArgument, codes.Unauthenticated, codes.PermissionDenied}

// origin is what a server knows of its cluster when it starts.
type origin struct {
	cluster uint64
	peers   map[uint64]string
	// joined means that the server joined an existing cluster, and uid is the number that
	// identified its request.
	joined bool
	uid    uint64
}

// resolve finds out which server of which cluster this is: from the configuration or, for
// a server that joins, from its data directory or from the cluster.
func resolve(ctx context.Context, c config.Server, certificates *certs.Store) (config.Server, origin, error) {
	if c.Join == "" {
		cluster, err := c.Cluster()
		peers, _ := config.ParsePeers(c.Peers) // Validate has read them
		return c, origin{cluster: cluster, peers: peers}, err
	}
	told, err := store.Join(c.Data, func(uid uint64) (store.Joined, error) { return join(ctx, c, certificates, uid) })
	if err != nil {
		return c, origin{}, err
	}
	c.ID = told.Server
	peers := maps.Clone(told.Peers)
	peers[c.ID] = c.PeerAdvertise
	return c, origin{cluster: told.Cluster, peers: peers, joined: true, uid: told.UID}, nil
}

// join asks one server of the cluster after the other to let this server join, until the
// leader has answered. While another change of members is under way it waits.
func join(ctx context.Context, c config.Server, certificates *certs.Store, uid uint64) (store.Joined, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	secrecy := insecure.NewCredentials()
	if certificates.Joining != nil {
		secrecy = credentials.NewTLS(certificates.Joining())
	}
	pool := forward.NewPool(grpc.WithTransportCredentials(secrecy))
	defer pool.Close()
	told := ""
	for {
		var failures []string
		for _, address := range c.JoinAddresses() {
			joined, err := joinBy(ctx, c, pool, address, uid)
			switch {
			case err == nil:
				c.Log.Info("joined the cluster", "server", joined.Server, "cluster", config.FormatCluster(joined.Cluster), "address", address)
				return joined, nil
			case slices.Contains(refusals, status.Code(err)):
				return joined, fmt.Errorf("join: refused by %s: %s", address, api.Reason(err))
			}
			failures = append(failures, fmt.Sprintf("%s: %s", address, api.Reason(err)))
		}
		if why := strings.Join(failures, "; "); why != told {
			told = why
			c.Log.Warn("cannot join the cluster yet; retrying", "why", why)
		}
		if wait.For(ctx, joinPause) != nil {
			return store.Joined{}, fmt.Errorf("join: not accepted within %v: %s", joinTimeout, told)
		}
	}
}

// joinBy asks one server.
func joinBy(ctx context.Context, c config.Server, pool *forward.Pool, address string, uid uint64) (joined store.Joined, err error) {
	ctx, cancel := context.WithTimeout(ctx, forward.DefaultDeadline)
	defer cancel()
	client, err := pool.Get(address)
	if err != nil {
		return joined, err
	}
	if ctx, err = withJoinToken(ctx, c, address); err != nil {
		return joined, err
	}
	answer, err := client.Join(ctx, &api.JoinRequest{Uid: uid, PeerAddress: c.PeerAdvertise, ClientAddress: c.Advertise, Learner: c.Learner})
	if err != nil {
		return joined, err
	}
	joined.Server = answer.GetId()
	joined.Peers = make(map[uint64]string)
	for _, m := range answer.GetMembers() {
		if m.GetPeerAddress() != "" && m.GetId() != joined.Server {
			joined.Peers[m.GetId()] = m.GetPeerAddress()
		}
	}
	if joined.Cluster, err = strconv.ParseUint(answer.GetCluster(), 16, 64); err != nil || joined.Server == 0 || len(joined.Peers) == 0 {
		return joined, errors.New("malformed response; is it a server of another release?")
	}
	return joined, nil
}

// withJoinToken attaches the join token, if there is one, to a call of a server.
func withJoinToken(ctx context.Context, c config.Server, address string) (context.Context, error) {
	if c.JoinTokenFile == "" {
		return ctx, nil
	}
	content, err := os.ReadFile(c.JoinTokenFile)
	switch {
	case err != nil:
		return ctx, status.Errorf(codes.Unauthenticated, "join-token-file: %v", err)
	case c.TLSCert == "" && !config.Loopback(address):
		return ctx, status.Error(codes.Unauthenticated, "join-token-file: a token would go to another machine in the clear; set --tls-cert and --tls-key")
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+strings.TrimSpace(string(content))), nil
}

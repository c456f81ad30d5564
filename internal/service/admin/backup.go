package admin

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/act"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/backup"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/version"
)

// backupChunk is the size of the part of a file in one message.
const backupChunk = 256 << 10

// Backup streams the state of the cluster as a file. A linearizable backup contains
// everything acknowledged before the call.
func (a *Acts) Backup(req *api.BackupRequest, stream grpc.ServerStreamingServer[api.BackupChunk]) error {
	if req.GetSent() && authn.IsForwarded(stream.Context()) {
		_, by, err := act.OriginOf(stream.Context())
		if err != nil {
			return err
		}
		return act.Note(stream.Context(), a.cfg.Node, by, registry.BackedUp, "")
	}
	parts, err := a.backup(stream.Context(), req)
	if err != nil {
		return err
	}
	for _, part := range parts {
		for chunk := range slices.Chunk(part, backupChunk) {
			if err := stream.Send(&api.BackupChunk{Data: chunk}); err != nil {
				return err
			}
		}
	}
	if !authn.IsForwarded(stream.Context()) { // otherwise the server that asked sends it to the caller
		a.sent(stream.Context(), req.GetStale())
	}
	return nil
}

// sent notes that this server has sent the whole of a backup to its caller. A stale one may be old, so
// it is not put on record.
func (a *Acts) sent(ctx context.Context, stale bool) {
	a.cfg.Metrics.LastBackup.Store(time.Now().UnixNano())
	if stale || a.cfg.Node.Level() < version.Settings {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recordWithin)
	defer cancel()
	ctx, by, err := act.OriginOf(ctx) // with another number than that of the record before the backup
	if err != nil {
		return
	}
	// If no leader records it, the caller has its backup all the same, and the metric of this server shows it.
	_, _ = forward.OnLeaderInTime(ctx, a.cfg.Forward, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, act.Note(ctx, a.cfg.Node, by, registry.BackedUp, "")
	}, func(ctx context.Context, leader api.ConclaveClient) (struct{}, error) {
		stream, err := leader.Backup(ctx, &api.BackupRequest{Sent: true})
		err = forward.EachOf(stream, err, func(*api.BackupChunk) error { return nil })
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return struct{}{}, err
	})
}

// recordWithin is how long a backup that was sent may take to get on record.
const recordWithin = 5 * time.Second

// backup returns the file in parts.
func (a *Acts) backup(ctx context.Context, req *api.BackupRequest) ([][]byte, error) {
	ctx, by, err := act.OriginOf(ctx)
	if err != nil {
		return nil, err
	}
	if req.GetStale() {
		by.Request = [16]byte{} // which only the log needs
		a.cfg.Audit.Note(registry.Record{Kind: "backup", Origin: by, Reason: "stale"})
		parts, err := a.state(ctx, true, a.cfg.Node.Stale)
		return parts, a.cfg.Forward.Status(ctx, err)
	}
	here := func(ctx context.Context) ([][]byte, error) {
		if err := a.record(ctx, by); err != nil {
			return nil, err
		}
		return a.state(ctx, false, a.cfg.Node.Read)
	}
	return forward.OnLeader(ctx, a.cfg.Forward, here, func(ctx context.Context, leader api.ConclaveClient) (parts [][]byte, err error) {
		stream, err := leader.Backup(ctx, req)
		err = forward.EachOf(stream, err, func(chunk *api.BackupChunk) error {
			parts = append(parts, chunk.GetData())
			return nil
		})
		if !errors.Is(err, io.EOF) {
			return nil, err
		}
		return parts, nil
	})
}

// record records a backup before it is taken, if the level has an audit trail. This server leads.
func (a *Acts) record(ctx context.Context, by registry.Origin) error {
	if a.cfg.Node.Rules() == nil {
		return nil
	}
	ctx, cancel := forward.WithDeadline(ctx)
	defer cancel()
	return act.Note(ctx, a.cfg.Node, by, "backup", "")
}

// state creates the file from this server's state, which read returns.
func (a *Acts) state(ctx context.Context, stale bool, read func(context.Context) (node.State, error)) ([][]byte, error) {
	identity, err := strconv.ParseUint(a.cfg.Cluster, 16, 64)
	if err != nil {
		return nil, err
	}
	state, err := read(ctx)
	switch {
	case err != nil:
		return nil, err
	case state.Applied == 0:
		return nil, status.Errorf(codes.Unavailable, "server %d has no state yet: it waits for a snapshot from the leader", a.cfg.Server)
	}
	header := backup.Header{
		Cluster: identity, Name: a.cfg.ClusterName, Server: a.cfg.Server, Version: a.cfg.Version,
		Time: time.Now().UnixNano(), Stale: stale, Index: state.Applied, Term: state.Term,
	}
	return backup.Parts(header, state.Encode()), nil
}

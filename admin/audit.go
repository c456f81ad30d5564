package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/client"
)

// AuditRecord is the record of an administrative act, or of a refused one. AuditTarget is the object
// of the act.
type (
	AuditRecord = jsonform.AuditRecord
	AuditTarget = jsonform.AuditTarget
)

// AuditQuery selects records. The zero value selects all records that the cluster keeps and the
// caller may read.
type AuditQuery struct {
	// After selects the records with a larger number.
	After uint64
	// Since selects the records from that time on.
	Since time.Time
	// Actor, Kind and Prefix select records by the principal, the kind and the first part of
	// the target's name. An empty one selects all.
	Actor, Kind, Prefix string
	// Stale lets any server answer. Its records may lag behind those of the cluster, but it
	// needs no leader.
	Stale bool
}

func (q *AuditQuery) request() *api.AuditLogRequest {
	req := &api.AuditLogRequest{After: q.After, Stale: q.Stale, Actor: q.Actor, Kind: q.Kind, NamePrefix: q.Prefix}
	if !q.Since.IsZero() {
		req.SinceUnixNs = q.Since.UnixNano()
	}
	return req
}

// AuditLog returns the selected records, the oldest first. The cluster keeps the newest 3,072
// acts and 1,024 refusals.
func (a *Admin) AuditLog(ctx context.Context, q AuditQuery) (records []AuditRecord, err error) {
	err = a.ask(ctx, "audit log", func(ctx context.Context, server api.ConclaveClient) error {
		records = nil
		stream, err := server.AuditLog(ctx, q.request())
		if err != nil {
			return err
		}
		err = receiveRecords(stream, func(r AuditRecord) error {
			records = append(records, r)
			return nil
		})
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
	return records, err
}

// FollowAuditLog reports the selected records, and then each new one. It closes the channel when
// ctx ends or the client is closed. It reports a repeated refusal again, with its new count.
func (a *Admin) FollowAuditLog(ctx context.Context, q AuditQuery) (<-chan AuditRecord, error) {
	before, err := a.AuditLog(ctx, q)
	if err != nil {
		return nil, err
	}
	out := make(chan AuditRecord)
	err = client.Feed(ctx, a.conn, out, func(ctx context.Context) {
		report := func(r AuditRecord) error {
			select {
			case out <- r:
				q.After = r.Number
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		for _, r := range before {
			if report(r) != nil {
				return
			}
		}
		a.conn.Roam(ctx, func(ctx context.Context, address string) bool { return a.followRecords(ctx, address, &q, report) })
	})
	return out, a.conn.Failed("audit log", "", err)
}

// followRecords follows the audit log through one server until the stream ends. It reports
// whether a record arrived.
func (a *Admin) followRecords(ctx context.Context, address string, q *AuditQuery, report func(AuditRecord) error) (heard bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req := q.request()
	req.Follow = true
	stream, err := client.OpenAt(ctx, a.conn, address, func(ctx context.Context, server api.ConclaveClient) (grpc.ServerStreamingClient[api.AuditRecords], error) {
		return server.AuditLog(ctx, req)
	})
	if err == nil {
		err = receiveRecords(stream, func(r AuditRecord) error {
			heard = true
			return report(r)
		})
	}
	if ctx.Err() == nil {
		a.conn.CannotFollow("audit log", address, err)
	}
	return heard
}

// receiveRecords passes records to report until the stream ends or report fails.
func receiveRecords(stream grpc.ServerStreamingClient[api.AuditRecords], report func(AuditRecord) error) error {
	for {
		message, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, line := range message.GetLines() {
			var r AuditRecord
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				return fmt.Errorf("audit log: malformed response: %w", err)
			}
			if err := report(r); err != nil {
				return err
			}
		}
	}
}

package conclave

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/conclave-io/conclave/service/api"
)

// AuditRecord is an act of administration, or a refused one, that the cluster has on record.
// Its JSON is a line of an audit log, as servers write it.
type AuditRecord struct {
	V int `json:"v"`
	// Chain is "acts" or "refusals"; in the audit log of a server also "server".
	Chain string `json:"chain"`
	// Number orders the records.
	Number uint64    `json:"number,string"`
	Time   time.Time `json:"time"`
	// Term is that of the leader.
	Term uint64 `json:"term,string"`
	// Server is whose audit log the record is in, 0 if it is from the cluster.
	Server uint64 `json:"server,omitempty"`
	// Kind is what was done: "access", "revoke", "end-session", "drop", "member", "level",
	// "guard", "backup" and others.
	Kind string `json:"kind"`
	// Actor is the principal that did it; empty if it was anonymous, or the servers
	// themselves. Via and Remote say from where, as in Caller.
	Actor  string `json:"actor,omitempty"`
	Via    string `json:"via,omitempty"`
	Remote string `json:"remote,omitempty"`
	// Request tells requests apart, 32 hexadecimal digits.
	Request string       `json:"request,omitempty"`
	Target  *AuditTarget `json:"target,omitempty"`
	// Reason says why, or what exactly was changed.
	Reason string `json:"reason,omitempty"`
	// Result is "OK", or why it was refused.
	Result string `json:"result"`
	// Count is how many times in a row the same was refused.
	Count uint64 `json:"count"`
	// Previous is the hash of the record before in the chain, and Hash that of this one.
	Previous string `json:"previous"`
	Hash     string `json:"hash"`
}

// AuditTarget is what an act was about.
type AuditTarget struct {
	// Class is "lock" or "election" if Name is that of one.
	Class  string `json:"class,omitempty"`
	Name   string `json:"name,omitempty"`
	Fence  uint64 `json:"fence,omitempty,string"`
	Owner  string `json:"owner,omitempty"`
	Server uint64 `json:"server,omitempty"`
}

// AuditQuery says which records are wanted. Its zero value is for all that the cluster
// keeps, and the caller may see.
type AuditQuery struct {
	// After is a number: only newer records.
	After uint64
	// Since is a moment: only records since then.
	Since time.Time
	// Actor, Kind and Prefix, if not empty, are the principal, the kind, and how the name
	// of the target begins.
	Actor, Kind, Prefix string
	// Stale takes what any server has that can be reached. It may lag behind the cluster,
	// but needs no leader.
	Stale bool
}

func (q *AuditQuery) request() *api.AuditLogRequest {
	req := &api.AuditLogRequest{After: q.After, Stale: q.Stale, Actor: q.Actor, Kind: q.Kind, NamePrefix: q.Prefix}
	if !q.Since.IsZero() {
		req.SinceUnixNs = q.Since.UnixNano()
	}
	return req
}

// AuditLog returns what is on record, the oldest first. The cluster keeps the newest 3,072
// acts and 1,024 refusals.
func (c *Client) AuditLog(ctx context.Context, q AuditQuery) (records []AuditRecord, err error) {
	err = c.ask(ctx, "audit log", func(ctx context.Context, server api.ConclaveClient, _ *api.StatusResponse) error {
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

// FollowAuditLog reports what is on record, and then each record that is new, until ctx ends
// or the client is closed; then the channel is closed. A refusal that is repeated is
// reported again, with its count.
func (c *Client) FollowAuditLog(ctx context.Context, q AuditQuery) (<-chan AuditRecord, error) {
	before, err := c.AuditLog(ctx, q)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan AuditRecord)
	report := func(r AuditRecord) error {
		select {
		case out <- r:
			q.After = r.Number
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err = c.start(func() {
		defer context.AfterFunc(c.ctx, cancel)()
		defer cancel()
		defer close(out)
		for _, r := range before {
			if report(r) != nil {
				return
			}
		}
		c.roam(ctx, func(ctx context.Context, address string) bool { return c.followRecords(ctx, address, &q, report) })
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("conclave: audit log: %w", err)
	}
	return out, nil
}

// followRecords follows the record through one server until that ends, and reports whether
// anything came.
func (c *Client) followRecords(ctx context.Context, address string, q *AuditQuery, report func(AuditRecord) error) (heard bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var stream grpc.ServerStreamingClient[api.AuditRecords]
	// The stream outlives the question that makes sure of the cluster.
	err := c.put(ctx, address, func(_ context.Context, server api.ConclaveClient, _ *api.StatusResponse) (err error) {
		req := q.request()
		req.Follow = true
		stream, err = server.AuditLog(ctx, req)
		return err
	})
	if err == nil {
		err = receiveRecords(stream, func(r AuditRecord) error {
			heard = true
			return report(r)
		})
	}
	if ctx.Err() == nil {
		c.pool.failed(address)
		c.cfg.Logger.Debug("cannot follow the audit log", "server", address, "err", err)
	}
	return heard
}

// receiveRecords hands records over until the stream ends or report fails.
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

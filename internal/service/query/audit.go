package query

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/admission"
	"github.com/conclave-io/conclave/internal/service/audit"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/node"
)

// AuditLog streams the audit trail.
func (c *Calls) AuditLog(req *api.AuditLogRequest, stream grpc.ServerStreamingServer[api.AuditRecords]) error {
	ctx := stream.Context()
	lines, err := c.AuditLines(ctx, req)
	if err != nil {
		return err
	}
	if err := sendLines(stream, lines); err != nil || !req.GetFollow() {
		return err
	}
	return c.cfg.Forward.Status(ctx, c.followAuditLog(ctx, req, lines, func(lines []jsonform.AuditRecord) error { return sendLines(stream, lines) }))
}

// linesAtOnce bounds the lines in a message.
const linesAtOnce = 256

func sendLines(stream grpc.ServerStreamingServer[api.AuditRecords], lines []jsonform.AuditRecord) error {
	for some := range slices.Chunk(lines, linesAtOnce) {
		message := new(api.AuditRecords)
		for i := range some {
			message.Lines = append(message.Lines, strings.TrimSuffix(string(some[i].Append(nil)), "\n"))
		}
		if err := stream.Send(message); err != nil {
			return err
		}
	}
	return nil
}

// AuditLines returns the records that a request asks for and its caller may see.
func (c *Calls) AuditLines(ctx context.Context, req *api.AuditLogRequest) ([]jsonform.AuditRecord, error) {
	return auditLines(ctx, c.cfg.Forward, req)
}

func auditLines(ctx context.Context, f *forward.Forwarder, req *api.AuditLogRequest) (lines []jsonform.AuditRecord, err error) {
	look := func(state node.State) {
		cursor := audit.At(state.Trail(), req.GetAfter())
		lines = chosen(ctx, req, state.Rules(), cursor.Next(0, state.Trail(), true))
	}
	_, err = forward.Read(ctx, f, req.GetStale(), struct{}{}, look, func(ctx context.Context, leader api.ConclaveClient) (struct{}, error) {
		once := proto.CloneOf(req)
		once.Follow = false
		lines, err = collectLines(ctx, leader, once)
		return struct{}{}, err
	})
	if err != nil {
		return nil, err
	}
	return lines, nil
}

// NewestRecord returns the number of the newest record of the cluster that the caller may see, or after
// if that is newer.
func NewestRecord(ctx context.Context, f *forward.Forwarder, after uint64) (uint64, error) {
	lines, err := auditLines(ctx, f, &api.AuditLogRequest{After: after})
	if err != nil || len(lines) == 0 {
		return after, err
	}
	return lines[len(lines)-1].Number, nil
}

// collectLines reads lines from another server.
func collectLines(ctx context.Context, leader api.ConclaveClient, req *api.AuditLogRequest) ([]jsonform.AuditRecord, error) {
	var lines []jsonform.AuditRecord
	stream, err := leader.AuditLog(ctx, req)
	err = forward.EachOf(stream, err, func(message *api.AuditRecords) error {
		for _, text := range message.GetLines() {
			l, err := audit.ParseLine([]byte(text))
			if err != nil {
				return err
			}
			lines = append(lines, l)
		}
		return nil
	})
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return lines, nil
}

// followAuditLog sends the lines that follow those sent, as this server learns of them, for as
// long as the caller may see them.
func (c *Calls) followAuditLog(ctx context.Context, req *api.AuditLogRequest, sent []jsonform.AuditRecord, send func([]jsonform.AuditRecord) error) error {
	ctx, stop := c.cfg.Forward.Serving(ctx)
	defer stop()
	who, err := authn.CallerOf(ctx)
	if err != nil {
		return err
	}
	after := req.GetAfter()
	if len(sent) > 0 {
		after = sent[len(sent)-1].Number
	}
	var cursor *audit.Cursor
	for {
		trail, changed := c.cfg.Node.Trail()
		if cursor == nil && trail.Numbered >= after { // otherwise this server lags behind the leader
			at := audit.At(trail, after)
			cursor = &at
		}
		if cursor != nil {
			if err := c.cfg.Gate.Permit(ctx, who, access.OnCluster(access.Audit)); err != nil {
				return err
			}
			if err := send(chosen(ctx, req, c.cfg.Node.Rules(), cursor.Next(time.Now().UnixNano(), trail, true))); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// chosen returns the lines of the entries that a request asks for, except those about names
// that its caller may not read.
func chosen(ctx context.Context, req *api.AuditLogRequest, rules *access.State, entries []audit.Entry) (lines []jsonform.AuditRecord) {
	for _, e := range entries {
		rec := e.Record
		switch {
		case rec == nil, rec.Time < req.GetSinceUnixNs(), req.GetActor() != "" && rec.Origin.Actor != req.GetActor(), req.GetKind() != "" && rec.Kind != req.GetKind():
			continue
		case !strings.HasPrefix(rec.Name, req.GetNamePrefix()):
			continue
		case audit.Named(rec):
			if may := admission.Reader(ctx, rules, rec.Class); may != nil && !may(rec.Name) {
				continue
			}
		}
		lines = append(lines, audit.LineOf(e.Chain, e.Previous, rec))
	}
	return lines
}

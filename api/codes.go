package api

import (
	"strings"

	"google.golang.org/grpc/codes"
)

// Meaning is the meaning of a Code outside this protocol.
type Meaning struct {
	// Name is the code in JSON: its name in the protocol without "CODE_".
	Name string
	// GRPC is the status of a call that has no reply to carry the code in.
	GRPC codes.Code
	// HTTP is the status of a response.
	HTTP int
}

// meanings is append-only, like the enumeration.
var meanings = map[Code]Meaning{
	Code_CODE_UNSPECIFIED:     {"UNSPECIFIED", codes.Unknown, 500},
	Code_CODE_OK:              {"OK", codes.OK, 200},
	Code_CODE_QUEUED:          {"QUEUED", codes.OK, 202},
	Code_CODE_HELD:            {"HELD", codes.FailedPrecondition, 423},
	Code_CODE_NOT_HELD:        {"NOT_HELD", codes.FailedPrecondition, 409},
	Code_CODE_SESSION_GONE:    {"SESSION_GONE", codes.NotFound, 410},
	Code_CODE_INVALID:         {"INVALID", codes.InvalidArgument, 400},
	Code_CODE_EXHAUSTED:       {"EXHAUSTED", codes.ResourceExhausted, 429},
	Code_CODE_NOT_LEADER:      {"NOT_LEADER", codes.FailedPrecondition, 503},
	Code_CODE_UNAVAILABLE:     {"UNAVAILABLE", codes.Unavailable, 503},
	Code_CODE_STALE:           {"STALE", codes.Aborted, 409},
	Code_CODE_CANCELLED:       {"CANCELLED", codes.Canceled, 409},
	Code_CODE_WRONG_CLUSTER:   {"WRONG_CLUSTER", codes.FailedPrecondition, 421},
	Code_CODE_INTERNAL:        {"INTERNAL", codes.Internal, 500},
	Code_CODE_TIMEOUT:         {"TIMEOUT", codes.DeadlineExceeded, 423},
	Code_CODE_REVOKED:         {"REVOKED", codes.Aborted, 409},
	Code_CODE_NOT_FOUND:       {"NOT_FOUND", codes.NotFound, 404},
	Code_CODE_UNAUTHENTICATED: {"UNAUTHENTICATED", codes.Unauthenticated, 401},
	Code_CODE_DENIED:          {"DENIED", codes.PermissionDenied, 403},
	Code_CODE_QUOTA:           {"QUOTA", codes.ResourceExhausted, 429},
	Code_CODE_DEADLOCK:        {"DEADLOCK", codes.Aborted, 409},
	Code_CODE_MOVED:           {"MOVED", codes.FailedPrecondition, 421},
	Code_CODE_NOT_MEMBER:      {"NOT_MEMBER", codes.FailedPrecondition, 503},
	Code_CODE_STATE_LIMIT:     {"STATE_LIMIT", codes.ResourceExhausted, 507},
}

// MeaningOf returns the meaning of c. A code of a newer server has the meaning of
// CODE_UNSPECIFIED, under its own name.
func MeaningOf(c Code) Meaning {
	if m, known := meanings[c]; known {
		return m
	}
	m := meanings[Code_CODE_UNSPECIFIED]
	m.Name = strings.TrimPrefix(c.String(), "CODE_")
	return m
}

package api

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// CodedError is an error with a code that its gRPC status does not tell.
type CodedError interface {
	error
	Code() Code
}

// CodeOf returns the code for the error of a call that has no reply. A call that can succeed
// later is unavailable.
func CodeOf(err error) Code {
	if coded, is := errors.AsType[CodedError](err); is {
		return coded.Code()
	}
	switch status.Code(err) {
	case codes.InvalidArgument:
		return Code_CODE_INVALID
	case codes.ResourceExhausted:
		return Code_CODE_EXHAUSTED
	case codes.NotFound:
		return Code_CODE_NOT_FOUND
	case codes.Unauthenticated:
		return Code_CODE_UNAUTHENTICATED
	case codes.PermissionDenied:
		return Code_CODE_DENIED
	case codes.Unavailable, codes.FailedPrecondition, codes.Aborted, codes.Canceled, codes.DeadlineExceeded:
		return Code_CODE_UNAVAILABLE
	}
	return Code_CODE_INTERNAL
}

// Reason returns the text of an error without the prefix that gRPC adds.
func Reason(err error) string {
	if text, is := status.FromError(err); is {
		return text.Message()
	}
	return err.Error()
}

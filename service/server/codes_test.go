package server

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/service/api"
)

// What can be tried again is no fault of the server: a cut that new epochs ended, too.
func TestWhatCanBeTriedAgainIsUnavailable(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.FailedPrecondition, codes.Aborted, codes.Canceled, codes.DeadlineExceeded} {
		if got := codeOf(status.Error(code, "")); got != api.Code_CODE_UNAVAILABLE {
			t.Errorf("%v is %v", code, got)
		}
	}
}

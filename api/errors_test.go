package api_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
)

// Errors that a retry can solve are not counted as errors of the server, including a cut
// that new epochs ended.
func TestWhatCanBeTriedAgainIsUnavailable(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.FailedPrecondition, codes.Aborted, codes.Canceled, codes.DeadlineExceeded} {
		if got := api.CodeOf(status.Error(code, "")); got != api.Code_CODE_UNAVAILABLE {
			t.Errorf("%v is %v", code, got)
		}
	}
}

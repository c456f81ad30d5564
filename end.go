package conclave

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/service/api"
)

// EndSession ends a session of somebody else, by its public id, and says why. Its
// waits end at once. Its holders are asked to leave as by Revoke, and keep their holds
// until they have left, or for one TTL. Meanwhile the session acquires nothing more.
// EndSession returns how many holds the session had to release, or ErrNotFound if
// there is no such session. Without a deadline in ctx it tries for 10 seconds.
func (c *Client) EndSession(ctx context.Context, id, reason string) (holds int, err error) {
	raw, err := parsePublicID(id)
	if err != nil {
		return 0, err
	}
	if len(reason) > MaxReason {
		return 0, fmt.Errorf("conclave: end session: reason: %d bytes: must have at most %d bytes", len(reason), MaxReason)
	}
	var missing error
	err = c.ask(ctx, "end session "+id, func(ctx context.Context, server api.ConclaveClient) error {
		answer, err := server.EndSession(ctx, &api.EndSessionRequest{Id: raw, Reason: reason})
		if status.Code(err) == codes.NotFound {
			missing = &RequestError{Op: "end session", Name: id, Code: api.Code_CODE_NOT_FOUND, Message: status.Convert(err).Message()}
			return nil
		}
		holds = int(answer.GetHolds())
		return err
	})
	return holds, cmp.Or(err, missing)
}

func parsePublicID(id string) ([]byte, error) {
	digits, public := strings.CutPrefix(id, publicPrefix)
	raw, err := hex.DecodeString(digits)
	if !public || err != nil || len(raw) != 16 {
		return nil, fmt.Errorf("conclave: session: %.40q: expected a public id, %s and 32 hexadecimal digits", id, publicPrefix)
	}
	return raw, nil
}

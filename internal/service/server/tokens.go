package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/conclave-io/conclave/internal/kit/wait"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/certs"
)

// expired is for how long after the expiry of a token the log has warnings.
const expired = 24 * time.Hour

// warnOfTokens logs which principals lose their last token soon, until ctx ends.
func warnOfTokens(ctx context.Context, every time.Duration, rules func() *access.State, log *slog.Logger) {
	told := make(certs.Warnings)
	var seen *access.State
	var endings []access.Ending
	for range wait.Ticks(ctx, every) {
		if now := rules(); now != seen {
			seen, endings = now, now.Endings(access.MaxEndings)
		}
		now := time.Now()
		for _, e := range endings {
			expires := time.Unix(0, e.At)
			if now.Sub(expires) > expired {
				continue
			}
			if text := told.Due("the last token of "+e.Principal, expires, now); text != "" {
				log.Warn(text+"; replace it with conclave access token rotate", "expires", expires.UTC().Format(time.RFC3339))
			}
		}
	}
}

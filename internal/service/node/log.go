package node

import (
	"context"
	"log/slog"

	"github.com/conclave-io/conclave/internal/service/agreement"
)

// levels maps raft's log levels. Raft's messages about ordinary elections help only to
// find a fault, so they are logged one level lower.
var levels = map[agreement.Level]slog.Level{
	agreement.LevelDebug: slog.LevelDebug,
	agreement.LevelInfo:  slog.LevelDebug,
	agreement.LevelWarn:  slog.LevelWarn,
	agreement.LevelError: slog.LevelError,
}

func raftLog(log *slog.Logger) func(agreement.Level, string) {
	return func(level agreement.Level, text string) {
		log.Log(context.Background(), levels[level], text, "from", "raft")
	}
}

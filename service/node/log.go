package node

import (
	"context"
	"log/slog"

	"github.com/conclave-io/conclave/service/agreement"
)

// levels maps what raft reports. Its account of an ordinary election is of
// interest to somebody who looks for a fault, hence a level lower.
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

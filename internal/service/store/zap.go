package store

import (
	"context"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapTo returns a logger for etcd's packages that writes to log. Their info messages are
// internal details and become debug messages here. So do their errors, which are also
// returned: one line for one failure is enough.
func zapTo(log *slog.Logger) *zap.Logger { return zap.New(&zapCore{log: log}) }

type zapCore struct {
	log    *slog.Logger
	fields []zapcore.Field
}

func slogLevel(level zapcore.Level) slog.Level {
	switch {
	case level > zapcore.ErrorLevel:
		return slog.LevelError
	case level == zapcore.WarnLevel:
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

func (c *zapCore) Enabled(level zapcore.Level) bool {
	return c.log.Enabled(context.Background(), slogLevel(level))
}

func (c *zapCore) With(fields []zapcore.Field) zapcore.Core {
	return &zapCore{log: c.log, fields: append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

func (c *zapCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

func (c *zapCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	values := zapcore.NewMapObjectEncoder()
	for _, field := range append(c.fields[:len(c.fields):len(c.fields)], fields...) {
		field.AddTo(values)
	}
	attrs := make([]slog.Attr, 0, len(values.Fields))
	for key, value := range values.Fields {
		attrs = append(attrs, slog.Any(key, value))
	}
	c.log.LogAttrs(context.Background(), slogLevel(entry.Level), entry.Message, attrs...)
	return nil
}

func (c *zapCore) Sync() error { return nil }

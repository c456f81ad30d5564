package agreement

import "fmt"

// Level is the severity of a log line.
type Level uint8

const (
	LevelDebug Level = iota
	LevelInfo
	LevelWarn
	LevelError
)

// logger adapts Config.Log to raft's interface. Raft calls Panic or Fatal when an assertion of
// its own fails. The logger then panics, so that the host stops the member and nothing
// continues with a broken log.
type logger struct {
	sink    func(Level, string)
	verbose bool
	// muted drops everything while a proposal is processed: each refusal is
	// returned to the proposer, and a line for each would fill the log just
	// when the member is overloaded.
	muted bool
}

func (l *logger) print(level Level, v []any) {
	if l.enabled(level) {
		l.sink(level, fmt.Sprint(v...))
	}
}

func (l *logger) printf(level Level, format string, v []any) {
	if l.enabled(level) {
		l.sink(level, fmt.Sprintf(format, v...))
	}
}

func (l *logger) enabled(level Level) bool {
	return l.sink != nil && !l.muted && (level > LevelDebug || l.verbose)
}

func (l *logger) Debug(v ...any)                   { l.print(LevelDebug, v) }
func (l *logger) Debugf(format string, v ...any)   { l.printf(LevelDebug, format, v) }
func (l *logger) Info(v ...any)                    { l.print(LevelInfo, v) }
func (l *logger) Infof(format string, v ...any)    { l.printf(LevelInfo, format, v) }
func (l *logger) Warning(v ...any)                 { l.print(LevelWarn, v) }
func (l *logger) Warningf(format string, v ...any) { l.printf(LevelWarn, format, v) }
func (l *logger) Error(v ...any)                   { l.print(LevelError, v) }
func (l *logger) Errorf(format string, v ...any)   { l.printf(LevelError, format, v) }
func (l *logger) Fatal(v ...any)                   { panic("raft: " + fmt.Sprint(v...)) }
func (l *logger) Fatalf(format string, v ...any)   { panic("raft: " + fmt.Sprintf(format, v...)) }
func (l *logger) Panic(v ...any)                   { panic("raft: " + fmt.Sprint(v...)) }
func (l *logger) Panicf(format string, v ...any)   { panic("raft: " + fmt.Sprintf(format, v...)) }

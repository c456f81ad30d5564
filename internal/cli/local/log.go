package local

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// Log is the part of a file that takes what one run of a server prints. What
// earlier runs said stands before it.
type Log struct {
	path  string
	begin int64 // how long the file was before the run
}

// NewLog returns the log of a run that is about to begin.
func NewLog(path string) Log {
	l := Log{path: path}
	if info, err := os.Stat(path); err == nil {
		l.begin = info.Size()
	}
	return l
}

// Open opens the file for the run.
func (l Log) Open() (*os.File, error) {
	return os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// Said returns what the run has said so far, or why that cannot be read.
func (l Log) Said() string {
	file, err := os.Open(l.path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err.Error()
	}
	said, err := io.ReadAll(io.NewSectionReader(file, l.begin, info.Size()-l.begin))
	if err != nil {
		return err.Error()
	}
	return string(said)
}

// LastLine returns the last that a run said which has ended. One that left no
// whole line may have had no room for it, on a full disk; then that is the reason.
func (l Log) LastLine() string {
	said := l.Said()
	last := strings.TrimSpace(said)
	last = last[strings.LastIndexByte(last, '\n')+1:]
	if !strings.HasSuffix(said, "\n") {
		if err := l.endLine(); err != nil {
			return strings.TrimSpace(fmt.Sprintf("%s [its log cannot be written: %v]", last, err))
		}
	}
	if last == "" {
		return "nothing"
	}
	return last
}

// endLine adds the end of a line, to see whether the log can be written.
func (l Log) endLine() error {
	file, err := l.Open()
	if err != nil {
		return err
	}
	_, err = file.WriteString("\n")
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

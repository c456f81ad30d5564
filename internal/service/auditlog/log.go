// Package auditlog writes the audit log of a server to a file or a pipe. Package audit decides
// what a log contains.
package auditlog

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/kit/wait"
	"github.com/conclave-io/conclave/internal/service/audit"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/stream"
)

const (
	// auditEvery is how often a server checks whether its audit log needs a line.
	auditEvery = time.Second
	// watchEvery is how often it checks whether the log can be written.
	watchEvery = 200 * time.Millisecond
	// newestTimeout is how long it waits for the number of the newest record.
	newestTimeout = 2 * time.Second
	// waitTimeout is how long Wait waits for a write that hangs.
	waitTimeout = 2 * time.Second
)

// Node is what the audit log needs of a node.Node.
type Node interface {
	Trail() (trail registry.Trail, changed <-chan struct{})
	View(ctx context.Context, f func(*replica.Replica)) error
	Metrics() *node.Metrics
}

// Config sets up the audit log of a server.
type Config struct {
	// Server is the id of the server.
	Server uint64
	// Version is the version of the server.
	Version string
	// Path is the file, or StandardOutput; "" means that there is no audit log.
	Path string
	// Required makes a server that cannot write its log hand leadership over and refuse what
	// belongs into it.
	Required bool
	// Holds has the grants and ends of holds that are written too, or is nil.
	Holds *audit.Holds
	// AnchorEvery is how often the server's own log gets the end of the audit trail.
	AnchorEvery time.Duration
	// Node has the audit trail.
	Node Node
	// Newest returns the number of the newest record of the cluster, or after if that is newer.
	Newest func(ctx context.Context, after uint64) (uint64, error)
	// Log is the server's own log.
	Log *slog.Logger
}

// Log is the audit log of a server. One goroutine writes, and may hang; another one watches
// whether it does.
type Log struct {
	cfg    Config
	ctx    context.Context // ends when the server stops
	began  time.Time
	wake   chan struct{}
	done   chan struct{} // closed when the writer has ended
	tasks  sync.WaitGroup
	reopen atomic.Bool
	// lines counts the lines written, failures the failed writes, and newest is the time of the
	// last line, in ns since 1970.
	lines, failures, newest atomic.Int64

	mu      sync.Mutex
	journal *audit.Journal
	health  audit.Health
	failing string

	// The following fields belong to the writer.
	file    *file
	begun   bool // the file was open once
	pending []jsonform.AuditRecord
	known   uint64 // the number of the newest record at a time after the start
	asked   bool   // known is known
}

// Start starts to write an audit log, if one is configured. It ends with ctx.
func Start(ctx context.Context, cfg Config) *Log {
	l := &Log{
		cfg: cfg, ctx: ctx, began: time.Now(), wake: make(chan struct{}, 1), done: make(chan struct{}),
		journal: audit.NewJournal(cfg.Server),
	}
	l.tasks.Go(l.anchor)
	if cfg.Path == "" {
		close(l.done)
		return l
	}
	l.Note(registry.Record{Kind: audit.KindStart, Reason: "version " + cfg.Version, Server: cfg.Server})
	go l.run()
	l.tasks.Go(l.watch)
	return l
}

// Wait waits, after the context of Start has ended, until everything is written. It does not wait for
// a write that hangs.
func (l *Log) Wait() {
	select {
	case <-l.done:
	case <-time.After(waitTimeout):
		l.cfg.Log.Error("stopping while a write to the audit log hangs", "file", l.cfg.Path)
	}
	l.tasks.Wait()
}

// Lines returns how many lines were written.
func (l *Log) Lines() int64 { return l.lines.Load() }

// Failures returns how many writes failed.
func (l *Log) Failures() int64 { return l.failures.Load() }

// Newest returns the time of the last line, in ns since 1970; 0 if there is none.
func (l *Log) Newest() int64 { return l.newest.Load() }

// monotonic returns the time since the log was started, in ns.
func (l *Log) monotonic() int64 { return int64(time.Since(l.began)) }

// notify makes the writer look for lines to write.
func (l *Log) notify() {
	select {
	case l.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// Note records something that only this server has.
func (l *Log) Note(rec registry.Record) {
	if l.cfg.Path == "" {
		return
	}
	rec.Time = time.Now().UnixNano()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.journal.Note(rec)
	l.notify()
}

// Answered records a request that the rules did not allow.
func (l *Log) Answered(who stream.Caller, call string, code api.Code, message string) {
	if code == api.Code_CODE_DENIED || code == api.Code_CODE_UNAUTHENTICATED {
		l.Refused(who, call, status.Error(api.MeaningOf(code).GRPC, message))
	}
}

// Refused records a call that this server has refused because of its caller.
func (l *Log) Refused(who stream.Caller, call string, err error) {
	code := api.CodeOf(err)
	if l.cfg.Path == "" || code != api.Code_CODE_UNAUTHENTICATED && code != api.Code_CODE_DENIED {
		return
	}
	r := audit.Refusal{Actor: who.Principal, Via: who.Via, Call: call, Reason: api.Reason(err), Result: registry.Code(code)}
	if who.Principal == "" {
		r.Remote = who.Remote
		if host, _, err := net.SplitHostPort(who.Remote); err == nil {
			r.Remote = host
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.journal.Refused(time.Now().UnixNano(), r)
	l.notify()
}

// run writes until the server stops, and then writes the rest.
func (l *Log) run() {
	defer close(l.done)
	ticker := time.NewTicker(auditEvery)
	defer ticker.Stop()
	var held <-chan struct{}
	if l.cfg.Holds != nil {
		held = l.cfg.Holds.Wake
	}
	for {
		_, changed := l.cfg.Node.Trail()
		l.write()
		select {
		case <-changed:
		case <-l.wake:
		case <-held:
		case <-ticker.C:
			l.catchUp()
		case <-l.ctx.Done():
			l.write()
			if l.file != nil {
				l.file.finish()
			}
			return
		}
	}
}

// write writes all pending lines, and notes whether it succeeded.
func (l *Log) write() {
	l.mu.Lock()
	l.health.Begin(l.monotonic())
	l.mu.Unlock()
	why := ""
	if err := l.attempt(); err != nil {
		l.failures.Add(1)
		why = err.Error()
	}
	l.mu.Lock()
	l.health.End(why)
	l.mu.Unlock()
}

func (l *Log) attempt() error {
	if err := l.ensureOpen(); err != nil {
		return err
	}
	wrote := false
	for {
		if len(l.pending) == 0 {
			trail, _ := l.cfg.Node.Trail()
			l.mu.Lock()
			l.pending = l.journal.Next(time.Now().UnixNano(), trail, l.asked && trail.Numbered >= l.known, l.cfg.Holds)
			l.mu.Unlock()
		}
		if len(l.pending) == 0 {
			break
		}
		if err := l.file.append(l.pending[0].Append(nil)); err != nil {
			return err
		}
		l.pending, wrote = l.pending[1:], true
		l.lines.Add(1)
		l.newest.Store(time.Now().UnixNano())
	}
	if err := l.file.flush(); err != nil || !wrote || !l.file.regular {
		return err
	}
	return l.file.Sync()
}

// ensureOpen makes sure that the file is open, and that the path still leads to it.
func (l *Log) ensureOpen() error {
	again := l.reopen.Swap(false)
	moved := l.file != nil && l.file.moved()
	shorter := l.file != nil && l.file.shorter()
	if l.file != nil && (again || moved || shorter) {
		switch {
		case shorter:
			l.Note(registry.Record{Kind: audit.KindFile, Reason: "lines that this server wrote were cut off the file"})
		case !again:
			l.Note(registry.Record{Kind: audit.KindFile, Reason: "the file was taken away, or replaced by another one, without SIGHUP"})
		}
		l.file.finish()
		l.file = nil
	}
	if l.file != nil {
		return nil
	}
	opened, err := openFile(l.cfg.Path)
	if err != nil {
		return err
	}
	l.file = opened
	if !l.begun {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.begun = true
		l.journal.Resume(opened.last)
	}
	return nil
}

// catchUp asks once for the number of the newest record. Until this server has applied that
// record, its trail may be older than the end of the file.
func (l *Log) catchUp() {
	if l.asked {
		return
	}
	trail, _ := l.cfg.Node.Trail()
	ctx, cancel := context.WithTimeout(l.ctx, newestTimeout)
	defer cancel()
	known, err := l.cfg.Newest(ctx, trail.Numbered)
	if err != nil {
		return
	}
	l.known, l.asked = known, true
}

// watch checks whether the log can be written, and acts if it cannot.
func (l *Log) watch() {
	told := ""
	for range wait.Ticks(l.ctx, watchEvery) {
		l.mu.Lock()
		before, now := l.failing, l.health.Failing(l.monotonic())
		l.failing = now
		handsOver := l.cfg.Required && l.health.HandsOver(l.monotonic(), l.cfg.Node.Metrics().Leader.Load() == l.cfg.Server)
		l.mu.Unlock()
		switch {
		case before == "" && now != "":
			l.cfg.Log.Error("cannot write the audit log", "file", l.cfg.Path, "err", now)
		case before != "" && now == "":
			l.cfg.Log.Info("writing the audit log works again", "file", l.cfg.Path)
		}
		if why := l.Unwritable(); why != told || handsOver {
			err := l.cfg.Node.View(l.ctx, func(r *replica.Replica) {
				r.Restrict(why)
				if handsOver {
					r.Resign()
				}
			})
			if err == nil { // otherwise the replica does not exist yet
				told = why
			}
		}
	}
}

// Unwritable returns why this server accepts no audited acts, or "".
func (l *Log) Unwritable() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.cfg.Required || l.failing == "" {
		return ""
	}
	return fmt.Sprintf("audit log: server %d cannot write it, and is set to take nothing that belongs into it; try another server", l.cfg.Server)
}

// Reopen opens the file again, after it was renamed.
func (l *Log) Reopen() {
	if l.cfg.Path != "" {
		l.reopen.Store(true)
		l.notify()
	}
}

// anchor logs again and again where the audit records end. Whoever changes the records later
// must change the server's own log too, which is usually kept elsewhere.
func (l *Log) anchor() {
	for range wait.Ticks(l.ctx, l.cfg.AnchorEvery) {
		trail, _ := l.cfg.Node.Trail()
		l.logEnd("acts", trail.Acts)
		l.logEnd("refusals", trail.Refusals)
	}
}

// logEnd logs the newest record of a chain.
func (l *Log) logEnd(name string, chain registry.Chain) {
	if n := len(chain.Records); n > 0 {
		last := chain.Records[n-1]
		l.cfg.Log.Info("the audit records end here", "chain", name, "number", last.Number, "hash", hex.EncodeToString(last.Hash[:]))
	}
}

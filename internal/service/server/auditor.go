package server

import (
	"context"
	"encoding/hex"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/audit"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
)

const (
	// auditEvery is how often a server checks whether its audit log needs a line.
	auditEvery = time.Second
	// mindEvery is how often it checks whether the log can be written.
	mindEvery = 200 * time.Millisecond
)

// auditor writes the audit log of a server. One goroutine writes, and may hang; another
// one watches whether it does.
type auditor struct {
	server *Server
	wake   chan struct{}
	done   chan struct{} // closed when the writer has ended
	reopen atomic.Bool
	// lines counts the lines written, failures the failed writes, and newest is the time of the
	// last line, in ns since 1970.
	lines, failures, newest atomic.Int64

	mu      sync.Mutex
	journal *audit.Journal
	health  audit.Health
	failing string

	// The following fields belong to the writer.
	file    *auditFile
	begun   bool // the file was open once
	pending []audit.Line
	known   uint64 // the number of the newest record at a time after the start
	asked   bool   // known is known
}

// startAudit starts to write the audit log, if one is configured.
func (s *Server) startAudit() {
	a := &auditor{server: s, wake: make(chan struct{}, 1), done: make(chan struct{}), journal: audit.NewJournal(s.cfg.ID)}
	s.audit = a
	if s.cfg.AuditLog == "" {
		close(a.done)
		return
	}
	a.note(registry.Record{Kind: audit.KindStart, Reason: "version " + s.cfg.Version, Server: s.cfg.ID})
	go a.run()
	s.serving.Go(a.mind)
}

// Lines implements metrics.AuditLog.
func (a *auditor) Lines() int64 { return a.lines.Load() }

// Failures implements metrics.AuditLog.
func (a *auditor) Failures() int64 { return a.failures.Load() }

// Newest implements metrics.AuditLog.
func (a *auditor) Newest() int64 { return a.newest.Load() }

// stopAudit waits until the writer has ended, but not for a write that hangs.
func (s *Server) stopAudit() {
	select {
	case <-s.audit.done:
	case <-time.After(partingTime):
		s.log.Error("stopping while a write to the audit log hangs", "file", s.cfg.AuditLog)
	}
}

// note records something that only this server has.
func (a *auditor) note(rec registry.Record) {
	if a.server.cfg.AuditLog == "" {
		return
	}
	rec.Time = time.Now().UnixNano()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.journal.Note(rec)
	signal(a.wake)
}

// answered records a request that the rules did not allow.
func (a *auditor) answered(who caller, call string, code api.Code, message string) {
	if code == api.Code_CODE_DENIED || code == api.Code_CODE_UNAUTHENTICATED {
		a.refused(who, call, status.Error(api.MeaningOf(code).GRPC, message))
	}
}

// refused records a call that this server has refused.
func (a *auditor) refused(who caller, call string, err error) {
	code := codeOf(err)
	if a.server.cfg.AuditLog == "" || code != api.Code_CODE_UNAUTHENTICATED && code != api.Code_CODE_DENIED {
		return
	}
	r := audit.Refusal{Actor: who.Principal, Via: who.Via, Call: call, Reason: reason(err), Result: registry.Code(code)}
	if who.Principal == "" {
		r.Remote = who.Remote
		if host, _, err := net.SplitHostPort(who.Remote); err == nil {
			r.Remote = host
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.journal.Refused(time.Now().UnixNano(), r)
	signal(a.wake)
}

// run writes until the server stops, and then writes the rest.
func (a *auditor) run() {
	defer close(a.done)
	ticker := time.NewTicker(auditEvery)
	defer ticker.Stop()
	var held <-chan struct{}
	if a.server.holds != nil {
		held = a.server.holds.Wake
	}
	for {
		_, changed := a.server.node.Trail()
		a.write()
		select {
		case <-changed:
		case <-a.wake:
		case <-held:
		case <-ticker.C:
			a.catchUp()
		case <-a.server.ctx.Done():
			a.write()
			if a.file != nil {
				a.file.finish()
			}
			return
		}
	}
}

// write writes all pending lines, and notes whether it succeeded.
func (a *auditor) write() {
	a.mu.Lock()
	a.health.Begin(monotonic())
	a.mu.Unlock()
	why := ""
	if err := a.attempt(); err != nil {
		a.failures.Add(1)
		why = err.Error()
	}
	a.mu.Lock()
	a.health.End(why)
	a.mu.Unlock()
}

func (a *auditor) attempt() error {
	if err := a.open(); err != nil {
		return err
	}
	wrote := false
	for {
		if len(a.pending) == 0 {
			trail, _ := a.server.node.Trail()
			a.mu.Lock()
			a.pending = a.journal.Next(time.Now().UnixNano(), trail, a.asked && trail.Numbered >= a.known, a.server.holds)
			a.mu.Unlock()
		}
		if len(a.pending) == 0 {
			break
		}
		if err := a.file.append(a.pending[0].Append(nil)); err != nil {
			return err
		}
		a.pending, wrote = a.pending[1:], true
		a.lines.Add(1)
		a.newest.Store(time.Now().UnixNano())
	}
	if err := a.file.flush(); err != nil || !wrote || !a.file.regular {
		return err
	}
	return a.file.Sync()
}

// open makes sure that the file is open, and that the path still leads to it.
func (a *auditor) open() error {
	again := a.reopen.Swap(false)
	moved := a.file != nil && a.file.moved()
	shorter := a.file != nil && a.file.shorter()
	if a.file != nil && (again || moved || shorter) {
		switch {
		case shorter:
			a.note(registry.Record{Kind: audit.KindFile, Reason: "lines that this server wrote were cut off the file"})
		case !again:
			a.note(registry.Record{Kind: audit.KindFile, Reason: "the file was taken away, or replaced by another one, without SIGHUP"})
		}
		a.file.finish()
		a.file = nil
	}
	if a.file != nil {
		return nil
	}
	file, err := openAudit(a.server.cfg.AuditLog)
	if err != nil {
		return err
	}
	a.file = file
	if !a.begun {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.begun = true
		a.journal.Resume(file.last)
	}
	return nil
}

// catchUp asks once for the number of the newest record. Until this server has applied that
// record, its trail may be older than the end of the file.
func (a *auditor) catchUp() {
	if a.asked {
		return
	}
	s := a.server
	trail, _ := s.node.Trail()
	ctx, cancel := context.WithTimeout(withCaller(s.ctx, caller{Principal: s.local(), Via: "local"}), answerWithin)
	defer cancel()
	lines, err := s.auditLog(ctx, &api.AuditLogRequest{After: trail.Numbered})
	if err != nil {
		return
	}
	a.known, a.asked = trail.Numbered, true
	if len(lines) > 0 {
		a.known = lines[len(lines)-1].Number
	}
}

// mind checks whether the log can be written, and acts if it cannot.
func (a *auditor) mind() {
	s, told := a.server, ""
	for range ticks(s.ctx, mindEvery) {
		a.mu.Lock()
		before, now := a.failing, a.health.Failing(monotonic())
		a.failing = now
		handsOver := s.cfg.AuditRequired && a.health.HandsOver(monotonic(), s.node.Metrics().Leader.Load() == s.cfg.ID)
		a.mu.Unlock()
		switch {
		case before == "" && now != "":
			s.log.Error("cannot write the audit log", "file", s.cfg.AuditLog, "err", now)
		case before != "" && now == "":
			s.log.Info("writing the audit log works again", "file", s.cfg.AuditLog)
		}
		if why := s.unaudited(); why != told || handsOver {
			err := s.node.View(s.ctx, func(r *replica.Replica) {
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

// unaudited returns why this server accepts no audited acts, or "".
func (s *Server) unaudited() string {
	s.audit.mu.Lock()
	defer s.audit.mu.Unlock()
	if !s.cfg.AuditRequired || s.audit.failing == "" {
		return ""
	}
	return "audit log: server " + strconv.FormatUint(s.cfg.ID, 10) + " cannot write it, and is set to take nothing that belongs into it; try another server"
}

// audited refuses an act of administration while the audit log cannot be written.
func (s *Server) audited(wanted need) error {
	if wanted.kind != onCluster && wanted.kind != byName || wanted.verb == access.Hold || wanted.verb == access.Read || wanted.verb == access.Revoke {
		return nil // for requests in sessions the leader decides
	}
	switch wanted.verb {
	case access.Status, access.Sessions, access.AccessRead, access.Audit:
		return nil
	}
	if why := s.unaudited(); why != "" {
		return status.Error(codes.Unavailable, why)
	}
	return nil
}

// noted records each connection through the admin socket.
type noted struct {
	net.Listener
	server *Server
}

func (n noted) Accept() (net.Conn, error) {
	conn, err := n.Listener.Accept()
	if socket, is := conn.(*net.UnixConn); err == nil && is {
		who, problem := throughSocket(socket, n.server.cfg.ID)
		rec := registry.Record{Kind: "socket", Origin: registry.Origin{Actor: who, Via: "local", Remote: socketName}, Result: registry.OK}
		if problem != nil {
			rec.Result, rec.Reason = registry.Denied, problem.Error()
		}
		n.server.audit.note(rec)
	}
	return conn, err
}

// Reopen opens the audit log again, after the file was renamed.
func (s *Server) Reopen() {
	if s.cfg.AuditLog != "" {
		s.audit.reopen.Store(true)
		signal(s.audit.wake)
	}
}

// anchor logs again and again where the audit records end. Whoever changes the records later
// must change the log too, which is usually kept elsewhere.
func (s *Server) anchor() {
	for range ticks(s.ctx, s.cfg.AnchorEvery) {
		trail, _ := s.node.Trail()
		s.logEnd("acts", trail.Acts)
		s.logEnd("refusals", trail.Refusals)
	}
}

// logEnd logs the newest record of a chain.
func (s *Server) logEnd(name string, chain registry.Chain) {
	if n := len(chain.Records); n > 0 {
		last := chain.Records[n-1]
		s.log.Info("the audit records end here", "chain", name, "number", last.Number, "hash", hex.EncodeToString(last.Hash[:]))
	}
}

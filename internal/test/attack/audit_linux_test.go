package attack

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/audit"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

func init() {
	attacks = append(attacks, attack{
		number: 31, what: "fill the disk with the audit log, let the log hang, take the file away, alter a line, remove a line",
		expected: "the leader leaves the lead, and no act, session or hold is new at a server that cannot write it; renewals, releases and closes are served; what was lacking comes from the record; conclave audit-log --verify finds the line",
		apart:    true, run: attackTheAuditLog,
	})
}

// auditLogOf returns the path of a server's audit log.
func auditLogOf(cfg *config.Server) string {
	return filepath.Join(filepath.Dir(cfg.Data), fmt.Sprint("audit-", cfg.ID, ".log"))
}

func (r *ruled) auditLog(id int) string {
	cfg := r.cluster.Config(id)
	return auditLogOf(&cfg)
}

// audited returns a cluster with rules. Its servers refuse requests that they cannot write to the
// audit log.
func (w *world) audited(servers int) *ruled {
	w.Helper()
	return w.withRules(servers, func(cfg *config.Server) { cfg.AuditLog, cfg.AuditRequired = auditLogOf(cfg), true })
}

// socketOf returns a client that is connected to the admin socket of a server.
func (r *ruled) socketOf(id int) api.ConclaveClient {
	r.Helper()
	return api.NewConclaveClient(r.connect("unix:" + filepath.Join(r.cluster.Config(id).Data, "admin.sock")))
}

// act changes the rules through a server.
func (r *ruled) act(through int, who string) {
	r.Helper()
	if _, err := r.socketOf(through).Access(r.within(), changing(bind(who, "viewer"))); err != nil {
		r.Fatal(err)
	}
}

// written waits until the audit log of a server contains a text.
func (r *ruled) written(path, text string) {
	r.Helper()
	servertest.Eventually(r.T, path+" has "+text, func() bool {
		log, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(log), text)
	})
}

// verify checks the lines of files against each other and against the audit record of the cluster.
func (r *ruled) verify(files ...string) *audit.Verifier {
	r.Helper()
	v := audit.NewVerifier()
	for _, name := range files {
		log, err := os.ReadFile(name)
		if err != nil {
			r.Fatal(err)
		}
		n := 0
		for line := range bytes.Lines(log) {
			n++
			v.Line(fmt.Sprintf("%s:%d", filepath.Base(name), n), line)
		}
	}
	v.Compare(r.recorded())
	return v
}

// agree waits until the files are consistent and complete. A server writes the lines about requests
// to other servers after those servers have answered.
func (r *ruled) agree(files ...string) (v *audit.Verifier) {
	r.Helper()
	defer func() {
		if r.Failed() {
			r.Logf("%v: %v", files, v.Problems)
		}
	}()
	servertest.Eventually(r.T, "the audit logs agree with the record", func() bool {
		v = r.verify(files...)
		return len(v.Problems) == 0
	})
	return v
}

func attackTheAuditLog(w *world) {
	r := w.audited(3)
	for id := 1; id <= 3; id++ {
		r.written(r.auditLog(id), "token:carol")
	}
	if v := r.agree(r.auditLog(1), r.auditLog(2), r.auditLog(3)); v.Gaps > 0 {
		r.Errorf("the untouched files have %d gaps", v.Gaps)
	}
	if info, err := os.Stat(r.auditLog(1)); err != nil || info.Mode().Perm() != 0o600 {
		r.Errorf("the file is %v, %v", info.Mode(), err)
	}
	r.fullDisk()
	r.tamper()
	r.removeLog()
	r.cutLog()
	w.hangTheAuditLog()
}

// fullDisk fills the disk that has the audit log of the leader. The leader must hand over to
// another server.
func (r *ruled) fullDisk() {
	r.Helper()
	leader := r.cluster.Leader()
	log := r.auditLog(leader)
	r.require(os.Rename(log, log+".away"))
	r.require(os.Symlink("/dev/full", log))
	r.act(leader, "cert:full")
	servertest.Eventually(r.T, "another server leads", func() bool { return r.cluster.Leader() != leader })
	_, err := r.socketOf(leader).EndSession(r.within(), &api.EndSessionRequest{Id: make([]byte, 16), Reason: "x"})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "audit log") {
		r.Errorf("a server without its audit log ends a session: %v", err)
	}
	other := r.cluster.Leader()
	r.act(other, "cert:elsewhere")
	bob := r.stream("bob")
	bob.expect(bob.send(acquiring("reports/full")), api.Code_CODE_OK)
	bob.expect(bob.send(closing()), api.Code_CODE_OK)

	r.require(os.Remove(log))
	r.require(os.Rename(log+".away", log))
	r.written(log, "cert:elsewhere")
	r.agree(log)
	servertest.Eventually(r.T, "the server carries out acts again", func() bool {
		_, err := r.socketOf(leader).EndSession(r.within(), &api.EndSessionRequest{Id: make([]byte, 16), Reason: "x"})
		return err != nil && status.Code(err) != codes.Unavailable
	})
}

// tamper changes one line and removes another.
func (r *ruled) tamper() {
	r.Helper()
	log, err := os.ReadFile(r.auditLog(2))
	r.require(err)
	forged := filepath.Join(r.TempDir(), "forged.log")
	at := bytes.Index(log, []byte("cert:elsewhere"))
	begin, end := bytes.LastIndexByte(log[:at], '\n')+1, at+bytes.IndexByte(log[at:], '\n')+1
	for what, text := range map[string][]byte{
		"altered":                              bytes.Replace(log, []byte("cert:elsewhere"), []byte("cert:somewhere"), 1),
		"removed":                              append(bytes.Clone(log[:begin]), log[end:]...),
		"altered beside its hash":              bytes.Replace(log, []byte(`"kind":"access"`), []byte(`"kind":"harmless","KIND":"access"`), 1),
		"removed with all others of its chain": linesWithout(log, `"chain":"acts"`),
		"removed with all others":              nil,
	} {
		r.require(os.WriteFile(forged, text, 0o600))
		if v := r.verify(forged); len(v.Problems) == 0 {
			r.Errorf("a line that was %s is not found", what)
		}
	}
}

// linesWithout returns the lines of a log that do not contain a text.
func linesWithout(log []byte, text string) (rest []byte) {
	for line := range bytes.Lines(log) {
		if !bytes.Contains(line, []byte(text)) {
			rest = append(rest, line...)
		}
	}
	return rest
}

// cutLog removes all text of an audit log while the server has the file open.
func (r *ruled) cutLog() {
	r.Helper()
	log := r.auditLog(3)
	r.require(os.Truncate(log, 0))
	r.act(2, "cert:cut")
	r.written(log, "were cut off the file")
	r.written(log, "cert:cut")
	if v := r.agree(log); !slices.Equal(v.Partial(), []uint64{3}) {
		r.Errorf("a log without its beginning counts as whole: a part are those of %v", v.Partial())
	}
}

// removeLog replaces the audit log of a server by an empty file.
func (r *ruled) removeLog() {
	r.Helper()
	log := r.auditLog(1)
	r.require(os.Rename(log, log+".taken"))
	r.require(os.WriteFile(log, nil, 0o666))
	r.act(2, "cert:taken")
	r.written(log, "cert:taken")
	r.written(log, `"kind":"audit-file"`)
	r.agree(log+".taken", log)
	if info, err := os.Stat(log); err != nil || info.Mode().Perm() != 0o600 {
		r.Errorf("the file is %v, %v", info.Mode(), err)
	}
}

func (w *world) require(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// hangTheAuditLog gives a single server a pipe that nobody reads. The server must still accept
// requests that keep or release a hold.
func (w *world) hangTheAuditLog() {
	r := w.audited(1)
	bob := r.stream("bob")
	held := bob.expect(bob.send(acquiring("reports/kept")), api.Code_CODE_OK)
	asked := bob.expect(bob.send(acquiring("reports/other")), api.Code_CODE_OK)
	waiting := r.stream("bob")
	wait := waiting.send(acquiring("reports/kept"))
	waiting.expect(wait, api.Code_CODE_QUEUED)

	log := r.auditLog(1)
	r.require(os.Rename(log, log+".away"))
	r.require(syscall.Mkfifo(log, 0o600))
	pipe, err := os.OpenFile(log, os.O_RDWR, 0)
	r.require(err)
	defer pipe.Close()
	r.require(pipe.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)))
	_, _ = io.Copy(pipe, io.LimitReader(zeros{}, 1<<20)) // until the pipe is full
	r.act(1, "cert:hung")
	servertest.Eventually(r.T, "acts are refused", func() bool {
		_, err := r.admin.Access(r.within(), changing(bind("cert:refused", "viewer")))
		return status.Code(err) == codes.ResourceExhausted
	})
	bob.expect(bob.send(acquiring("reports/new")), api.Code_CODE_EXHAUSTED)
	late := r.attachTo(r.within(), r.as("bob"), newSecret())
	late.expect(late.send(opening(time.Minute)), api.Code_CODE_EXHAUSTED)
	bob.expect(bob.send(renewal()), api.Code_CODE_OK)
	bob.expect(bob.send(releasing(asked.GetSequence())), api.Code_CODE_OK)
	bob.expect(bob.send(releasing(held.GetSequence())), api.Code_CODE_OK)
	waiting.expect(wait, api.Code_CODE_OK)
	waiting.expect(waiting.send(closing()), api.Code_CODE_OK)

	r.require(os.Remove(log))
	r.require(os.Rename(log+".away", log))
	r.written(log, "cert:hung")
	servertest.Eventually(r.T, "acquisitions are taken again", func() bool {
		n := bob.send(acquiring("reports/again"))
		return bob.reply(n).GetCode() == api.Code_CODE_OK
	})
	r.agree(log)
}

// zeros reads as zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

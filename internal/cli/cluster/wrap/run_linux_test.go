package wrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/keeps"
	"github.com/conclave-io/conclave/internal/cli/guard"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// grant is a hold without a cluster.
type grant struct {
	ctx      context.Context
	lose     context.CancelCauseFunc
	deadline atomic.Int64
	renewed  chan struct{}
	ttl      time.Duration
}

func newGrant(left time.Duration) *grant {
	g := &grant{renewed: make(chan struct{}, 1), ttl: 10 * time.Second}
	g.ctx, g.lose = context.WithCancelCause(context.Background())
	g.deadline.Store(int64(boottime.Now().Add(left)))
	return g
}

func (g *grant) renew(left time.Duration) {
	g.deadline.Store(int64(boottime.Now().Add(left)))
	select {
	case g.renewed <- struct{}{}:
	default:
	}
}

func (g *grant) Name() string             { return "some/name" }
func (g *grant) Context() context.Context { return g.ctx }
func (g *grant) Deadline() time.Duration  { return time.Duration(g.deadline.Load()) }
func (g *grant) Renewed() <-chan struct{} { return g.renewed }

func (g *grant) Fence() (uint64, error) {
	if g.ctx.Err() != nil {
		return 0, conclave.ErrLost
	}
	return 7, nil
}

func (g *grant) Floor() (uint64, error) { return 5, nil }

func (g *grant) TTL() time.Duration { return g.ttl }

func (g *grant) Kept() conclave.Kept {
	return conclave.Kept{Cluster: "c0ffee", Name: "some/name", Fence: 7}
}

// trial is a seeker whose cluster is made up by the test.
type trial struct {
	*seeker
	said     *bytes.Buffer
	released int
	// discarded counts the releases of holds under which nothing ran.
	discarded int
}

func newTrial(argv ...string) *trial {
	t := &trial{said: &bytes.Buffer{}}
	a := &runner{App: &connect.App{App: &ui.App{Stdout: &bytes.Buffer{}, Stderr: t.said}}}
	a.Client.Timeout = ui.Duration(time.Second)
	t.seeker = &seeker{app: a, name: "some/name", argv: argv}
	t.ttl, t.grace = ui.Duration(10*time.Second), ui.Duration(200*time.Millisecond)
	t.use = t.command
	t.release = func(context.Context, hold) error { t.released++; return nil }
	t.discard = func(context.Context, hold) error { t.discarded++; return nil }
	t.list = func(context.Context, *conclave.Client) ([]conclave.Resource, []uint64, error) { return nil, nil, nil }
	t.quiet = true // there is no client that could be asked
	return t
}

func (tr *trial) run(g *grant) (guard.Result, error) {
	tr.acquire = func(context.Context, *conclave.Client) (hold, error) { return g, nil }
	return tr.turn(context.Background(), nil, make(signals, 1))
}

func wantStatus(t *testing.T, err error, status int, line string) {
	t.Helper()
	var s *ui.Error
	if !errors.As(err, &s) || s.Status != status || err.Error() != line {
		t.Errorf("got error %v, want status %d and %q", err, status, line)
	}
}

const lostLine = `lock "some/name": lost: the session was not renewed in time, or a server ended it; the command was ended`

func TestCommandGetsFenceFloorAndResource(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	tr := newTrial("sh", "-c", `echo "$CONCLAVE_FENCE $CONCLAVE_FLOOR $CONCLAVE_RESOURCE" > "$0"; exit 5`, file)
	result, err := tr.run(newGrant(time.Minute))
	if err != nil || result.Status != 5 || tr.released != 1 {
		t.Fatalf("got %+v, %v, %d releases; want status 5 and a release", result, err, tr.released)
	}
	if got, _ := os.ReadFile(file); string(got) != "7 5 some/name\n" {
		t.Errorf("the command's environment says %q", got)
	}
}

// A command knows all holds that it runs under.
func TestCommandKnowsWhatIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	t.Setenv(keeps.Variable, "c0ffee/lock/3/an%20outer%2Flock  c0ffee/election/4/e not-a-hold")
	tr := newTrial("sh", "-c", `echo "$CONCLAVE_KEEPS" > "$0"`, file)
	tr.app.inherit()
	if _, err := tr.run(newGrant(time.Minute)); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(file)
	if want := "c0ffee/lock/3/an%20outer%2Flock c0ffee/election/4/e c0ffee/lock/7/some%2Fname\n"; string(got) != want {
		t.Errorf("the command's environment says %q, want %q", got, want)
	}
	if !strings.Contains(tr.said.String(), `"not-a-hold": expected CLUSTER/lock/FENCE/NAME`) {
		t.Errorf("it said %q", tr.said)
	}
}

// A command that runs under two nested locks gets the fence of the inner one. With the
// fence of the outer lock, its writes would look like those of another program.
func TestNestedCommandGetsItsOwnFence(t *testing.T) {
	for _, name := range []string{"CONCLAVE_FENCE", "CONCLAVE_FLOOR", "CONCLAVE_RESOURCE"} {
		t.Setenv(name, "of the outer lock")
	}
	TestCommandGetsFenceFloorAndResource(t)
}

func TestLossEndsTheCommand(t *testing.T) {
	g := newGrant(time.Hour)
	tr := newTrial("sleep", "60")
	loss := time.AfterFunc(300*time.Millisecond, func() { g.lose(conclave.ErrLost) })
	defer loss.Stop()
	_, err := tr.run(g)
	wantStatus(t, err, ui.StatusLost, lostLine)
	if tr.released != 0 {
		t.Error("what was lost was released")
	}
}

func TestDeadlineEndsTheCommand(t *testing.T) {
	t.Parallel()
	g := newGrant(3 * time.Second)
	tr := newTrial("sleep", "60")
	_, err := tr.run(g)
	wantStatus(t, err, ui.StatusLost, lostLine)
	if tr.released != 1 {
		t.Error("what was only about to be lost was not given up: it would be in the way of whoever stands again")
	}
	if late := boottime.Now().Sub(boottime.Time(g.Deadline())); late > 0 {
		t.Errorf("the command ended %v after the deadline", late)
	}
}

// TestRenewalKeepsTheCommand starts a command before a deadline that is too early for it,
// and runs it past the second deadline.
func TestRenewalKeepsTheCommand(t *testing.T) {
	t.Parallel()
	g := newGrant(100 * time.Millisecond)
	stop := make(chan struct{})
	renewing := make(chan struct{})
	go func() {
		defer close(renewing)
		ticks := time.NewTicker(50 * time.Millisecond)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				g.renew(3 * time.Second)
			case <-stop:
				return
			}
		}
	}()
	result, err := newTrial("sh", "-c", "sleep 4; exit 3").run(g)
	close(stop)
	<-renewing
	if err != nil || result.Status != 3 {
		t.Errorf("got %+v, %v, want status 3", result, err)
	}
}

func TestLostBeforeTheStart(t *testing.T) {
	g := newGrant(time.Millisecond)
	g.lose(conclave.ErrLost)
	_, err := newTrial("true").run(g)
	wantStatus(t, err, ui.StatusLost, strings.Replace(lostLine, "was ended", "was not started", 1))
}

// If the holder is asked to leave, the hold is released, but only after no process of the
// command is left.
func TestRevocationEndsTheCommandAndThenReleases(t *testing.T) {
	file := filepath.Join(t.TempDir(), "left")
	g := newGrant(time.Hour)
	tr := newTrial("sh", "-c", `trap 'echo left > "$0"; exit 0' TERM; echo ready > "$0"; while :; do sleep 0.01; done`, file)
	tr.grace = ui.Duration(10 * time.Second) // the command needs its time to write
	tr.release = func(context.Context, hold) error {
		tr.released++
		if text, _ := os.ReadFile(file); string(text) != "left\n" {
			t.Errorf("at the release the command has written %q", text)
		}
		return nil
	}
	go func() {
		for text := []byte(nil); len(text) == 0; text, _ = os.ReadFile(file) {
			runtime.Gosched()
		}
		g.lose(&conclave.RevokedError{Reason: "maintenance\nof db1"})
	}()
	_, err := tr.run(g)
	wantStatus(t, err, ui.StatusLost, `lock "some/name": revoked: the holder was asked to leave ("maintenance\nof db1"); the command was ended`)
	if tr.released != 1 {
		t.Errorf("%d releases, want 1", tr.released)
	}
}

func TestRevokedBeforeTheStart(t *testing.T) {
	g := newGrant(time.Hour)
	g.lose(&conclave.RevokedError{})
	tr := newTrial("true")
	_, err := tr.run(g)
	wantStatus(t, err, ui.StatusLost, `lock "some/name": revoked: the holder was asked to leave; the command was not started`)
	if tr.discarded != 1 || tr.released != 0 {
		t.Errorf("the hold was discarded %d times and released %d times, want once and never", tr.discarded, tr.released)
	}
}

// unheard is the context of a hold that has ended without anybody having heard.
type unheard struct{ context.Context }

func (unheard) Done() <-chan struct{} { return make(chan struct{}) }

type unheardGrant struct{ *grant }

func (g unheardGrant) Context() context.Context { return unheard{g.ctx} }

// A renewal that arrives with a revocation, or after it, does not extend the time of a
// command, even if the wrapper is stopped between the two.
func TestRenewalDoesNotKeepARevokedCommand(t *testing.T) {
	t.Parallel()
	g := newGrant(3 * time.Second)
	tr := newTrial("sleep", "8")
	revocation := time.AfterFunc(500*time.Millisecond, func() {
		g.lose(&conclave.RevokedError{})
		g.renew(time.Hour)
	})
	defer revocation.Stop()
	_, err := tr.app.runUnder(unheardGrant{g}, tr.specOf(g), make(signals))
	if !errors.Is(err, errRevoked) {
		t.Errorf("got %v, want %v", err, errRevoked)
	}
}

func TestRepeatStandsAgainAfterARevocation(t *testing.T) {
	tr := newTrial("sh", "-c", "exit 3")
	revoked := newGrant(time.Hour)
	revoked.lose(&conclave.RevokedError{Reason: "a better candidate"})
	grants := []*grant{revoked, newGrant(time.Hour)}
	tr.acquire = func(context.Context, *conclave.Client) (hold, error) {
		g := grants[0]
		grants = grants[1:]
		return g, nil
	}
	tr.repeat = true
	result, err := tr.turns(context.Background(), nil, make(signals))
	if err != nil || result.Status != 3 || tr.released != 1 || tr.discarded != 1 || !strings.Contains(tr.said.String(), "(a better candidate)") {
		t.Errorf("got %+v, %v, %d releases and %q, want status 3, a release, and before it one of what was not used", result, err, tr.released, tr.said)
	}
}

func TestSignalReachesTheCommand(t *testing.T) {
	tr := newTrial("sleep", "60")
	arrived := make(signals, 1)
	arrived <- syscall.SIGTERM
	g := newGrant(time.Hour)
	result, err := tr.app.runUnder(g, tr.specOf(g), arrived)
	if err != nil || result.Status != 143 {
		t.Errorf("got %+v, %v, want status 143", result, err)
	}
}

func TestSignalEndsTheWait(t *testing.T) {
	tr := newTrial("true")
	tr.acquire = func(ctx context.Context, _ *conclave.Client) (hold, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	arrived := make(signals, 2)
	arrived <- syscall.SIGWINCH
	arrived <- syscall.SIGINT
	_, err := tr.turn(context.Background(), nil, arrived)
	var gaveUp *interruption
	if !errors.As(err, &gaveUp) || ui.SignalStatus(gaveUp.sig) != 130 {
		t.Errorf("got %v, want an interruption of status 130", err)
	}
}

func TestRepeatStandsAgainAfterALoss(t *testing.T) {
	t.Parallel()
	// Only the second command ends by itself.
	tr := newTrial("sh", "-c", `mkdir "$0" 2>&- && sleep 60; exit 3`, filepath.Join(t.TempDir(), "started"))
	grants := []*grant{newGrant(16 * time.Second), newGrant(time.Hour)}
	tr.acquire = func(context.Context, *conclave.Client) (hold, error) {
		g := grants[0]
		grants = grants[1:]
		return g, nil
	}
	tr.repeat = true
	result, err := tr.turns(context.Background(), nil, make(signals))
	if want := "conclave: " + lostLine + "; waiting for it again\n"; err != nil || result.Status != 3 || tr.said.String() != want {
		t.Errorf("got %+v, %v and %q, want status 3 and %q", result, err, tr.said, want)
	}
}

func TestHeld(t *testing.T) {
	holder := conclave.Holder{Fence: 6, Host: "db\x1b[2J1", PID: 42, Program: "backup", Since: time.Unix(0, 0).UTC()}
	tr := newTrial("true")
	tr.acquire = func(context.Context, *conclave.Client) (hold, error) {
		return nil, &conclave.HeldError{Name: "some/name", Holder: holder}
	}
	_, err := tr.turn(context.Background(), nil, make(signals))
	who := ` by process 42 (backup) on "db\x1b[2J1" since 1970-01-01T00:00:00Z, fence 6`
	wantStatus(t, err, ui.StatusNotAcquired, `lock "some/name": held`+who)

	tr.runFlags.wait = ui.Duration(20 * time.Millisecond)
	tr.acquire = func(ctx context.Context, _ *conclave.Client) (hold, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	tr.list = func(context.Context, *conclave.Client) ([]conclave.Resource, []uint64, error) {
		return []conclave.Resource{{Name: "some/name", Holders: []conclave.Holder{holder}}}, nil, nil
	}
	_, err = tr.turn(context.Background(), nil, make(signals))
	wantStatus(t, err, ui.StatusNotAcquired, `lock "some/name": not acquired within 20ms: held`+who)
}

func TestReleaseThatFailsIsSaid(t *testing.T) {
	tr := newTrial("sh", "-c", "exit 4")
	tr.release = func(context.Context, hold) error { return errors.New("conclave: no leader\nfound") }
	result, err := tr.run(newGrant(time.Hour))
	if want := "conclave: lock \"some/name\": release failed: no leader; found; it will be free within 10s\n"; err != nil || result.Status != 4 || tr.said.String() != want {
		t.Errorf("got %+v, %v and %q, want status 4 and %q", result, err, tr.said, want)
	}
}

// A status file that cannot be written is said once. The command runs nevertheless.
func TestStatusFileThatCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "removed")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	tr := newTrial("sh", "-c", "exit 4")
	tr.file.path = filepath.Join(dir, "status")
	if err := errors.Join(tr.file.open("lock", "some/name"), os.Remove(dir)); err != nil {
		t.Fatal(err)
	}
	err := tr.finish(tr.run(newGrant(time.Hour)))
	if want := fmt.Sprintf("conclave: --status-file: %q: no such file or directory\n", tr.file.path); err != nil || tr.app.Status != 4 || tr.said.String() != want {
		t.Errorf("got status %d, %v and %q, want status 4 and %q", tr.app.Status, err, tr.said, want)
	}
}

func TestCommandThatCannotRun(t *testing.T) {
	tr := newTrial("no-such-command")
	_, err := tr.run(newGrant(time.Hour))
	wantStatus(t, err, guard.StatusNotFound, `cannot run "no-such-command": no such command`)
	if tr.discarded != 1 {
		t.Error("the lock was not released")
	}
}

// If an algorithm guards a lock, the hold has a shorter TTL than requested. The command
// must still have time.
func TestHoldShorterThanTTL(t *testing.T) {
	tr := newTrial("true")
	tr.grace = ui.Duration(4 * defaultGrace)
	g := newGrant(3320 * time.Millisecond) // what is left of 4.8 s right before a renewal
	g.ttl = 4800 * time.Millisecond
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	go func() {
		defer g.lose(conclave.ErrLost)
		for renewal := time.NewTicker(150 * time.Millisecond); ; {
			select {
			case <-renewal.C:
				g.renew(3320 * time.Millisecond)
			case <-ctx.Done():
				renewal.Stop()
				return
			}
		}
	}()
	if result, err := tr.run(g); err != nil || result.Lost {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestGraceDependsOnTTL(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{
		time.Hour: 2 * time.Second, 10 * time.Second: 2 * time.Second, 4 * time.Second: time.Second, 500 * time.Millisecond: 50 * time.Millisecond,
	} {
		f := runFlags{ttl: ui.Duration(ttl)}
		if err := f.resolve(changed{}); err != nil || time.Duration(f.grace) != want {
			t.Errorf("TTL %v: got %v, %v, want %v", ttl, &f.grace, err, want)
		}
		// There must be time for a renewal, sent every quarter, before TERM.
		believed := ttl - max(ttl/10, 100*time.Millisecond)
		if ttl < time.Second {
			believed = ttl - ttl/3
		}
		if left := believed - want - marginOf(ttl); left < 5*ttl/16 {
			t.Errorf("TTL %v: TERM comes %v after a renewal", ttl, left)
		}
	}
}

type changed map[string]bool

func (c changed) Changed(name string) bool { return c[name] }

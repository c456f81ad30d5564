package embed_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/embed"
	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// guarded returns a server alone at which an algorithm guards the names under "n/".
func guarded(t testing.TB) *embed.Client {
	t.Helper()
	client := open(t, embed.Config{Program: "near"})
	ctx := within(t)
	for {
		err := admin.New(client.Client).SetGuard(ctx, "n/", admin.Use{Algorithm: "suzuki-kasami"})
		if err != nil && ctx.Err() != nil { // else the level of the cluster has not risen yet
			t.Fatal(err)
		}
		if v, err := admin.New(client.Client).Homes(ctx); err != nil {
			t.Fatal(err)
		} else if len(v.Members) == 1 && v.Members[0].Home != nil && v.Members[0].Home.State == "OPEN" && v.Members[0].Home.Remaining > 0 {
			return client
		}
	}
}

// cause waits until a context has ended, and returns why.
func cause(t testing.TB, ctx context.Context) error {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-within(t).Done():
		t.Fatal("the context does not end")
	}
	return context.Cause(ctx)
}

// If an algorithm guards a lock, the server in this process grants it during the call,
// without a session. The hold appears in lists, excludes others, and ends like any other.
func TestNear(t *testing.T) {
	client := guarded(t)
	held, first := lock(t, client, "n/1")
	sessions, err := admin.New(client.Client).Sessions(within(t))
	if err != nil || slices.ContainsFunc(sessions, func(s admin.SessionInfo) bool { return s.Program != "" }) { // there is the seat of the server
		t.Errorf("it has opened %v, %v", sessions, err)
	}
	list, err := client.List(within(t), "n/")
	if err != nil || len(list) != 1 || len(list[0].Holders) != 1 || list[0].Holders[0].Fence != first || list[0].Holders[0].Program != "near" {
		t.Errorf("the list of locks is %+v, %v", list, err)
	}
	if _, err := client.TryLock(within(t), "n/1"); !errors.Is(err, conclave.ErrHeld) {
		t.Errorf("a second hold of one lock: %v", err)
	}
	if floor, err := held.Floor(); floor != first || err != nil || held.Name() != "n/1" || held.Kept().Fence != first {
		t.Errorf("floor %d, %v; kept %v", floor, err, held.Kept())
	}
	until := held.Deadline()
	if left := until - time.Duration(boottime.Now()); left <= 0 || left > held.TTL() {
		t.Errorf("it is certain for %v of %v", left, held.TTL())
	}
	select {
	case <-held.Renewed():
		if held.Deadline() <= until {
			t.Error("it is renewed, and its deadline has not moved")
		}
	case <-within(t).Done():
		t.Error("it is not renewed")
	}
	waits := make(chan *conclave.Lock)
	go func() {
		next, err := client.Lock(within(t), "n/1")
		if err != nil {
			t.Error(err)
		}
		waits <- next
	}()
	for {
		if list, err = client.List(within(t), "n/"); err != nil || len(list) == 1 && len(list[0].Waiters) == 1 {
			break
		}
	}
	if err := held.Unlock(within(t)); err != nil || cause(t, held.Context()) != conclave.ErrReleased {
		t.Errorf("%v, and the cause is %v", err, context.Cause(held.Context()))
	}
	if err := held.Unlock(within(t)); !errors.Is(err, conclave.ErrNotHeld) {
		t.Errorf("it is given up twice: %v", err)
	}
	if _, err := held.Fence(); !errors.Is(err, conclave.ErrNotHeld) {
		t.Errorf("the fence of what was given up: %v", err)
	}
	next := <-waits
	if second, err := next.Fence(); second <= first || err != nil {
		t.Errorf("fence %d after %d, %v", second, first, err)
	}
	shut(t, client)
}

// A second client of the server in this process also holds without a session there, and the two
// exclude each other.
func TestNearOfASecondClient(t *testing.T) {
	client := guarded(t)
	cfg := client.Instance().ClientConfig()
	cfg.Program = "second"
	second, err := conclave.Dial(within(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	held, err := second.Lock(within(t), "n/1")
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := admin.New(client.Client).Sessions(within(t))
	if err != nil || slices.ContainsFunc(sessions, func(s admin.SessionInfo) bool { return s.Program != "" }) {
		t.Errorf("it has opened %v, %v", sessions, err)
	}
	if _, err := client.TryLock(within(t), "n/1"); !errors.Is(err, conclave.ErrHeld) {
		t.Errorf("a second hold of one lock: %v", err)
	}
	if err := second.Close(); err != nil || cause(t, held.Context()) == nil {
		t.Errorf("%v, and the cause is %v", err, context.Cause(held.Context()))
	}
	lock(t, client, "n/1")
	shut(t, client)
}

// A near holder is asked to leave by an operator, by a server that stops, and by Close.
func TestNearEnds(t *testing.T) {
	client := guarded(t)
	revoked, _ := lock(t, client, "n/1")
	ctx := revoked.Context()
	if _, err := admin.New(client.Client).Revoke(within(t), "n/1", "why"); err != nil {
		t.Fatal(err)
	}
	var asked *conclave.RevokedError
	if why := cause(t, ctx); !errors.As(why, &asked) || asked.Reason != "why" {
		t.Errorf("the cause is %v", why)
	}
	if _, err := revoked.Fence(); !errors.Is(err, conclave.ErrRevoked) {
		t.Errorf("the fence of what is to be given up: %v", err)
	}
	if err := revoked.Unlock(within(t)); err != nil {
		t.Error(err)
	}
	closed, _ := lock(t, client, "n/1")
	late, _ := lock(t, client, "n/2")
	ctx = closed.Context()
	shut(t, client)
	if why := cause(t, ctx); why != conclave.ErrReleased {
		t.Errorf("the cause is %v", why)
	}
	if why := cause(t, late.Context()); why != conclave.ErrReleased {
		t.Errorf("the cause of a context that was made late is %v", why)
	}
	if _, err := client.Lock(within(t), "n/1"); !errors.Is(err, conclave.ErrClosed) {
		t.Errorf("a closed client: %v", err)
	}
}

// The server stops under its program.
func TestNearWhenTheServerStops(t *testing.T) {
	client := guarded(t)
	held, _ := lock(t, client, "n/1")
	ctx := held.Context()
	go func() {
		if why := cause(t, ctx); !errors.Is(why, conclave.ErrRevoked) {
			t.Errorf("the cause is %v", why)
		}
		_ = held.Unlock(context.Background())
	}()
	stop, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := client.Instance().Stop(stop); err != nil {
		t.Error(err)
	}
	if _, err := held.Fence(); !errors.Is(err, conclave.ErrNotHeld) {
		t.Errorf("the fence after the server: %v", err)
	}
	_ = client.Close()
}

// BenchmarkNear acquires and releases a lock whose right this server already has.
func BenchmarkNear(b *testing.B) {
	client := guarded(b)
	defer shut(b, client)
	b.ReportAllocs()
	for b.Loop() {
		l, err := client.Lock(context.Background(), "n/1")
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Unlock(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

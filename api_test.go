package conclave_test

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client"
	"github.com/conclave-io/conclave/internal/test/clienttest"
)

func TestLinksNoServer(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	ours := []string{"github.com/conclave-io/conclave", "github.com/conclave-io/conclave/internal/kit/boottime", "github.com/conclave-io/conclave/internal/client", "github.com/conclave-io/conclave/internal/client/line", "github.com/conclave-io/conclave/internal/client/pool", "github.com/conclave-io/conclave/internal/kit/near", "github.com/conclave-io/conclave/api"}
	for dep := range strings.Lines(string(out)) {
		dep = strings.TrimSpace(dep)
		if strings.HasPrefix(dep, "github.com/") && !slices.Contains(ours, dep) || strings.HasPrefix(dep, "go.etcd.io/") {
			t.Errorf("programs that use the client would link %s", dep)
		}
	}
}

func TestBadNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clienttest.New(t, 1).Connect()
		for name, want := range map[string]string{
			"":                       `conclave: name: "": must have 1 to 512 bytes`,
			strings.Repeat("x", 513): `conclave: name: "` + strings.Repeat("x", 64) + `...": 513 bytes: must have at most 512 bytes`,
			"a\nb":                   `conclave: name: "a\nb": must not contain control characters; there is one at byte 1`,
			"a\xff":                  `conclave: name: "a\xff": must be valid UTF-8`,
		} {
			_, lock := c.Lock(t.Context(), name)
			_, try := c.TryLock(t.Context(), name)
			_, campaign := c.Campaign(t.Context(), name, nil)
			_, observe := c.Observe(t.Context(), name)
			for _, err := range []error{lock, try, campaign, observe} {
				var bad *conclave.NameError
				if !errors.As(err, &bad) || err.Error() != want {
					t.Errorf("got %v\nwant %s", err, want)
				}
			}
		}
		if _, err := c.Lock(t.Context(), strings.Repeat("é", 256)); err != nil {
			t.Errorf("a name of 512 bytes: %v", err)
		}
		if _, err := c.Campaign(t.Context(), "e", make([]byte, conclave.MaxValue+1)); err == nil || !strings.Contains(err.Error(), "65537 bytes") {
			t.Errorf("a value of 64 KiB and 1 byte: %v", err)
		}
	})
}

func TestBadConfig(t *testing.T) {
	one := []string{"127.0.0.1:7400"}
	for want, cfg := range map[string]conclave.Config{
		"Config.Servers: missing":                {},
		`"localhost": expected host:port`:        {Servers: []string{"localhost"}},
		`"127.0.0.1:99999": expected host:port`:  {Servers: []string{"127.0.0.1:99999"}},
		`"127.0.0.1:0": expected host:port`:      {Servers: []string{"127.0.0.1:0"}},
		"99ms: must be between 100ms and 1h0m0s": {Servers: one, TTL: 99 * time.Millisecond},
		"1h0m0.000000001s: must be":              {Servers: one, TTL: time.Hour + 1},
		"-1s: must be":                           {Servers: one, TTL: -time.Second},
		`"c1": expected 16`:                      {Servers: one, Cluster: "c1"},
	} {
		_, err := conclave.Dial(t.Context(), cfg)
		var bad *conclave.ConfigError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

func TestCloseReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		c := cl.Connect()
		l := clienttest.Lock(t, c, "x")
		other := cl.Connect()
		clienttest.Lock(t, other, "y")
		waiting := clienttest.InBackground(t.Context(), c, "y")
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if o := <-waiting; !errors.Is(o.Err, conclave.ErrClosed) {
			t.Errorf("waiting call: %v", o.Err)
		}
		if context.Cause(l.Context()) != conclave.ErrReleased {
			t.Errorf("cause %v", context.Cause(l.Context()))
		}
		if err := l.Unlock(t.Context()); !errors.Is(err, conclave.ErrNotHeld) {
			t.Errorf("Unlock: %v", err)
		}
		if _, err := c.Lock(t.Context(), "z"); !errors.Is(err, conclave.ErrClosed) {
			t.Errorf("Lock: %v", err)
		}
		if _, err := c.Observe(t.Context(), "z"); !errors.Is(err, conclave.ErrClosed) {
			t.Errorf("Observe: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
		if len(cl.Queue("x")) != 0 || len(cl.Queue("y")) != 1 {
			t.Error("the session lives on")
		}
	})
}

func TestCloseWithoutServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 1)
		c := cl.Connect()
		clienttest.Lock(t, c, "x")
		cl.Servers[0].Kill()
		began := time.Now()
		if err := c.Close(); err == nil || time.Since(began) > client.CloseLimit {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestOneHeartbeatHoweverManyLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 1)
		c := cl.Connect(func(cfg *conclave.Config) { cfg.TTL = 4 * time.Second })
		l := clienttest.Lock(t, c, "first")
		for _, name := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
			clienttest.Lock(t, c, name)
		}
		renewals := 0
		cl.Delay(func(rep *api.Reply) time.Duration {
			if rep.RemainingNs != 0 {
				renewals++
			}
			return 0
		})
		before := l.Deadline()
		time.Sleep(20*time.Second + time.Millisecond)
		cl.Delay(nil)
		if renewals < 19 || renewals > 21 {
			t.Errorf("%d renewals in 20 s with a TTL of 4 s", renewals)
		}
		if moved := l.Deadline() - before; moved < 19*time.Second || moved > 21*time.Second {
			t.Errorf("the deadline moved by %v in 20 s", moved)
		}
		select {
		case <-l.Renewed():
		default:
			t.Error("nothing said that the deadline moved")
		}
	})
}

func TestElectionAndObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		a, b, watcher := cl.Connect(), cl.Connect(), cl.Connect()
		ctx, cancel := context.WithCancel(t.Context())
		seen, err := watcher.Observe(ctx, "e")
		if err != nil {
			t.Fatal(err)
		}
		expect := func(value string) {
			t.Helper()
			synctest.Wait()
			select {
			case o := <-seen:
				if o.Elected != (value != "") || string(o.Leader.Value) != value {
					t.Fatalf("observed %+v, want %q", o, value)
				}
			case <-time.After(5 * time.Second):
				t.Fatalf("%q was not observed", value)
			}
		}
		expect("")
		first, err := a.Campaign(t.Context(), "e", []byte("a"))
		if err != nil {
			t.Fatal(err)
		}
		expect("a")
		if err := first.SetValue(t.Context(), []byte("a2")); err != nil {
			t.Fatal(err)
		}
		expect("a2")
		second := make(chan *conclave.Leadership, 1)
		go func() {
			l, err := b.Campaign(t.Context(), "e", []byte("b"))
			if err != nil {
				t.Error(err)
			}
			second <- l
		}()
		synctest.Wait()

		// A change while the watcher's server is dead is seen all the same.
		cl.Servers[0].Kill()
		cl.Lead(1)
		if err := first.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := first.SetValue(t.Context(), nil); !errors.Is(err, conclave.ErrNotHeld) {
			t.Fatalf("SetValue after Resign: %v", err)
		}
		l := <-second
		expect("b")
		f1, _ := l.Fence()
		if f1 <= first.Kept().Fence || l.Name() != "e" {
			t.Fatalf("fence %d after %d", f1, first.Kept().Fence)
		}

		// What a slow reader missed is merged into the newest.
		for _, v := range []string{"b2", "b3", "b4"} {
			if err := l.SetValue(t.Context(), []byte(v)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		expect("b4")
		cancel()
		synctest.Wait()
		if _, open := <-seen; open {
			t.Fatal("the channel is open after its context ended")
		}
	})
}

func TestObserverLeavesAStoppedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 2)
		a := cl.Connect()
		watcher := cl.Connect(func(cfg *conclave.Config) { slices.Reverse(cfg.Servers) })
		seen, err := watcher.Observe(t.Context(), "e")
		if err != nil {
			t.Fatal(err)
		}
		<-seen
		cl.Servers[0].Stop()
		cl.Lead(1)
		if _, err := a.Campaign(t.Context(), "e", []byte("v")); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if o := <-seen; !o.Elected || time.Since(began) > 6*time.Second {
			t.Fatalf("%+v after %v", o, time.Since(began))
		}
		cl.Servers[0].Resume()
	})
}

func TestQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		c := cl.Connect()
		for _, name := range []string{"a/1", "a/2", "a/3", "b"} {
			clienttest.Lock(t, c, name)
		}
		if _, err := c.Campaign(t.Context(), "a/e", []byte("v")); err != nil {
			t.Fatal(err)
		}
		names := func(rs []conclave.Resource, err error) (out []string) {
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rs {
				out = append(out, r.Name)
			}
			return out
		}
		if got := names(c.List(t.Context(), "a/")); !slices.Equal(got, []string{"a/1", "a/2", "a/3"}) {
			t.Errorf("locks %q", got)
		}
		if got := names(c.ListElections(t.Context(), "")); !slices.Equal(got, []string{"a/e"}) {
			t.Errorf("elections %q", got)
		}
		clienttest.Lock(t, cl.Connect(), "y")
		clienttest.Lock(t, cl.Connect(), "z")
		if sessions, err := admin.New(c).Sessions(t.Context()); err != nil || len(sessions) != 3 || sessions[0].Program != "test" {
			t.Errorf("sessions %+v, %v", sessions, err)
		}
		cl.Lead(-1) // the status needs no leader
		cl.Servers[0].Kill()
		if s, err := admin.New(c).Status(t.Context()); err != nil || s.Cluster != cl.Identity || s.Leader != 0 || len(s.Members) != 1 {
			t.Errorf("status %+v, %v", s, err)
		}
		cl.Servers[1].Kill()
		cl.Servers[2].Stop()
		began := time.Now()
		_, err := admin.New(c).Status(t.Context())
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 10*time.Second || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestLookingOpensNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 1)
		c := cl.Connect()
		if _, err := c.List(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		cl.Inspect(func(st *clienttest.State) {
			if st.Opened != 0 {
				t.Errorf("%d sessions were opened", st.Opened)
			}
		})
	})
}

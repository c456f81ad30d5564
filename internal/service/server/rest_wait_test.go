package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/kit/wait"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// Over a network whose round trips take longer than any fixed reserve, a wait that is over is told
// from an outcome that is unknown.
func TestJSONWaitsOverASlowNetwork(t *testing.T) {
	t.Parallel()
	c := servertest.StartSlow(t, 3, 150*time.Millisecond)
	b := browse(t, c.Address(c.Leader()))
	session := b.post("/v1/open", `{"ttl":"1h"}`)["session"]
	for _, call := range []string{"acquire", "campaign"} {
		for id := 1; id <= 3; id++ {
			b := browse(t, c.Address(id))
			on := func(wait string) string { return fmt.Sprintf(`{"session":%q,"name":"x","wait":%q}`, session, wait) }
			// The answer that it is free comes later than the wait ends.
			held := b.post("/v1/"+call, on("50ms"))
			for _, wait := range []string{"50ms", "600ms"} {
				refused := b.refused("POST", "/v1/"+call, on(wait), 423, "TIMEOUT")
				if message := refused.json["message"].(string); !strings.Contains(message, "has left the queue") {
					t.Errorf("%s, server %d, a wait of %s: %s", call, id, wait, message)
				}
			}
			b.post("/v1/release", fmt.Sprintf(`{"session":%q,"hold":%q}`, session, held["hold"]))
		}
	}
	b.nothingHeld()
}

// A request that waits does not notice that the connection between the servers breaks.
func TestJSONAWaitSurvivesACutBetweenServers(t *testing.T) {
	t.Parallel()
	c := servertest.StartSlow(t, 3, time.Millisecond)
	b, leader := browse(t, c.Address(c.Follower())), browse(t, c.Address(c.Leader()))
	opened := b.post("/v1/open", `{"ttl":"1h"}`)["session"]
	held := b.post("/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x"}`, opened))
	conn := sendPost(t, b.base[len("http://"):], "/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x"}`, opened))
	waiting := func(since string) func() bool {
		return func() bool {
			waiters := first(t, leader.get("/v1/locks")["locks"])["waiters"].([]any)
			return len(waiters) == 1 && waiters[0].(map[string]any)["since"] != since
		}
	}
	servertest.Eventually(t, "it waits", waiting(""))
	before := first(t, first(t, leader.get("/v1/locks")["locks"])["waiters"])["since"].(string)
	c.Cut()
	servertest.Eventually(t, "it waits again", waiting(before))
	b.post("/v1/release", fmt.Sprintf(`{"session":%q,"hold":%q}`, opened, held["hold"]))
	if status, text := answerOn(t, conn); status != 200 {
		t.Errorf("the caller gets %d %s", status, text)
	}
}

// If the quorum is lost while a request waits, its wait ends like any other. If no quorum answers at
// all, the outcome is unknown. Once there is a quorum again, no request waits that nobody knows.
func TestJSONWaitsThatEndWithoutAQuorum(t *testing.T) {
	t.Parallel()
	for _, leads := range []bool{true, false} {
		c := servertest.Start(t, 3)
		stays := c.Leader()
		if !leads {
			stays = c.Follower()
		}
		b := browse(t, c.Address(stays))
		opened := b.post("/v1/open", `{"ttl":"1h"}`)["session"]
		held := b.post("/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x"}`, opened))
		conn := sendPost(t, c.Address(stays), "/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"x","wait":"4s"}`, opened))
		servertest.Eventually(t, "it waits", func() bool { return strings.Contains(b.do("GET", "/v1/locks?stale=true", "").text, `"queue_length":1`) })
		for id := 1; id <= 3; id++ {
			if id != stays {
				c.Stop(id)
			}
		}
		if status, text := answerOn(t, conn); status != 423 || !strings.Contains(text, "is leaving the queue") {
			t.Errorf("the server leads: %v; a wait ends with %d %s", leads, status, text)
		}
		b.refused("POST", "/v1/acquire", fmt.Sprintf(`{"session":%q,"name":"y","wait":"100ms"}`, opened), 503, "UNAVAILABLE")
		// These take longer than the server at first tries to withdraw a request.
		b.refused("POST", "/v1/renew", fmt.Sprintf(`{"session":%q}`, opened), 503, "UNAVAILABLE")
		b.refused("POST", "/v1/renew", fmt.Sprintf(`{"session":%q}`, opened), 503, "UNAVAILABLE")
		for id := 1; id <= 3; id++ {
			if id != stays {
				c.Restart(id)
			}
		}
		c.Leader()
		servertest.Eventually(t, "it waits no more", func() bool {
			a := b.do("GET", "/v1/locks?prefix=x", "")
			return a.status == 200 && first(t, a.json["locks"])["queue_length"] == 0.0
		})
		b.post("/v1/release", fmt.Sprintf(`{"session":%q,"hold":%q}`, opened, held["hold"]))
		b.nothingHeld()
	}
}

// The connection of a waiting request shows that its caller lives, so its session lasts.
func TestJSONAWaitingRequestKeepsItsSession(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	b := browse(t, c.Address(c.Follower()))
	long := b.post("/v1/open", `{"ttl":"1h"}`)["session"]
	for call, class := range map[string]string{"acquire": "locks", "campaign": "elections"} {
		held := b.post("/v1/"+call, fmt.Sprintf(`{"session":%q,"name":"x"}`, long))
		short := b.post("/v1/open", `{"ttl":"6s"}`)["session"]
		begun := time.Now()
		b.refused("POST", "/v1/"+call, fmt.Sprintf(`{"session":%q,"name":"x","wait":"10s"}`, short), 423, "TIMEOUT")
		if took := time.Since(begun); took < 10*time.Second {
			t.Errorf("%s: a wait of 10s took %v", call, took)
		}
		conn := sendPost(t, b.base[len("http://"):], "/v1/"+call, fmt.Sprintf(`{"session":%q,"name":"x"}`, short))
		servertest.Eventually(t, "it waits", func() bool { return first(t, b.get("/v1/" + class)[class])["queue_length"] == 1.0 })
		b.post("/v1/release", fmt.Sprintf(`{"session":%q,"hold":%q}`, long, held["hold"]))
		if status, text := answerOn(t, conn); status != 200 {
			t.Errorf("%s: it gets %d %s", call, status, text)
		}
		// After the grant nothing renews the session.
		servertest.Eventually(t, "the session has expired", func() bool { return len(b.get("/v1/sessions")["sessions"].([]any)) == 1 })
		b.nothingHeld()
	}
}

// A session for locks under an algorithm lasts for little more than a second without renewals. While a
// request waits in it, it lasts, too.
func TestJSONAWaitAtAHomeKeepsItsSession(t *testing.T) {
	t.Parallel()
	// A home promises at most its own lease: one that a busy machine keeps.
	c := servertest.Start(t, 3, func(cfg *config.Server) { cfg.ViewLease = 5 * time.Second })
	b := browse(t, c.Address(c.Follower()))
	servertest.Eventually(t, "the level is high enough", func() bool {
		return b.do("POST", "/v1/guards", `{"prefix":"g/","algorithm":"ricart-agrawala"}`).status == 200
	})
	servertest.Eventually(t, "the prefix is guarded", func() bool {
		return strings.Contains(b.do("GET", "/v1/view", "").text, `"guards":[{"prefix":"g/","algorithm":"ricart-agrawala"}]`)
	})
	var holder, waiter map[string]any
	servertest.Eventually(t, "homes keep sessions", func() bool {
		one, two := b.do("POST", "/v1/open", `{"ttl":"5s","home":true}`), b.do("POST", "/v1/open", `{"ttl":"5s","home":true}`)
		holder, waiter = one.json, two.json
		return one.status == 200 && two.status == 200
	})
	on := func(session map[string]any, more string) string {
		return fmt.Sprintf(`{"session":%q,"home":%v%s}`, session["session"], session["home"], more)
	}
	b.post("/v1/acquire", on(holder, `,"name":"g/x"`))
	ctx, cancel := context.WithCancel(t.Context())
	renewed := make(chan bool)
	go func() {
		defer close(renewed)
		for range wait.Ticks(ctx, 200*time.Millisecond) {
			b.do("POST", "/v1/renew", on(holder, ""))
		}
	}()
	b.refused("POST", "/v1/acquire", on(waiter, `,"name":"g/x","wait":"12s"`), 423, "TIMEOUT")
	cancel()
	<-renewed
}

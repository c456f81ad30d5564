package attack

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

func quota(q *api.Quota) *api.AccessEdit {
	return &api.AccessEdit{Edit: &api.AccessEdit_PutQuota{PutQuota: q}}
}

// answers counts the codes of answers.
type answers map[api.Code]int

// flood sends requests and counts their answers.
func (s *stream) flood(requests ...*api.Request) answers {
	s.Helper()
	all := make(answers)
	for len(requests) > 0 {
		some := requests[:min(len(requests), 50)]
		requests = requests[len(some):]
		first := s.send(some...)
		for i := range some {
			all[s.reply(first+uint64(i)).GetCode()]++
		}
	}
	return all
}

// takeTooMuch opens sessions, acquires locks and stores values until the server refuses them.
func takeTooMuch(w *world) {
	r := w.withRules(3, func(cfg *config.Server) {
		cfg.StateLimit = 16 << 20
		cfg.Limits.SnapshotBytes, cfg.Limits.TailEntries = 1<<20, 10
	})
	r.change(
		quota(&api.Quota{Who: "token:bob", Claims: 3000, Bytes: 4 << 20}),
		quota(&api.Quota{Prefix: "reports/few/", Claims: 5}),
	)
	late := r.cluster.Follower()
	r.admin = r.leaderSocket()
	r.cluster.Stop(late)
	admin := r.attachTo(r.within(), r.leaderSocket(), newSecret()).open(time.Minute)
	served := func(while string) {
		r.Helper()
		held := admin.expect(admin.send(acquiring("reports/admin")), api.Code_CODE_OK)
		admin.expect(admin.send(releasing(held.GetSequence())), api.Code_CODE_OK)
		if renewed := admin.expect(admin.send(renewal()), api.Code_CODE_OK); len(renewed.GetRevoked()) > 0 {
			r.Errorf("%s: the others are told %v", while, renewed)
		}
	}

	for _, prefix := range []string{"reports/few/", "reports/"} {
		want := map[string]int{"reports/few/": 5, "reports/": 2995}[prefix]
		bob := r.stream("bob")
		var many []*api.Request
		for i := range 3500 {
			many = append(many, acquiring(fmt.Sprint(prefix, i)))
		}
		if got := bob.flood(many...); got[api.Code_CODE_OK] != want || got[api.Code_CODE_QUOTA] != 3500-want {
			r.Errorf("under %q the claims are answered %v; want %d", prefix, got, want)
		}
		served("too many claims")
		if prefix == "reports/" {
			bob.expect(bob.send(renewal()), api.Code_CODE_OK)
			bob.expect(bob.send(closing()), api.Code_CODE_OK)
		}
	}
	r.tooManySessions(served)
	bob := r.stream("bob")
	var values []*api.Request
	for i := range 100 {
		values = append(values, &api.Request{Op: &api.Request_Acquire{Acquire: &api.Acquire{Class: api.Class_CLASS_ELECTION, Name: fmt.Sprint("reports/v", i), Value: make([]byte, 64<<10)}}})
	}
	if got := bob.flood(values...); got[api.Code_CODE_OK] != 64 || got[api.Code_CODE_QUOTA] != 36 {
		r.Errorf("100 values of 64 KiB are answered %v", got)
	}
	served("values without end")
	r.fillTheState(late, admin)
}

// tooManySessions opens more sessions on one stream than a principal may have.
func (r *ruled) tooManySessions(served func(string)) {
	r.Helper()
	crowd, err := r.as("bob").Attach(r.within())
	if err != nil {
		r.Fatal(err)
	}
	const sessions = 1100
	for range sessions {
		open := opening(time.Minute)
		open.Session, open.Sequence = newSecret(), 1
		if err := crowd.Send(&api.ClientFrame{Requests: []*api.Request{open}}); err != nil {
			r.Fatal(err)
		}
	}
	got := make(answers)
	for n := 0; n < sessions; {
		frame, err := crowd.Recv()
		if err != nil {
			r.Fatal(err)
		}
		for _, reply := range frame.GetReplies() {
			got[reply.GetCode()]++
			n++
		}
	}
	if got[api.Code_CODE_OK] > 1000 || got[api.Code_CODE_OK] < 990 || got[api.Code_CODE_OK]+got[api.Code_CODE_QUOTA] != sessions {
		r.Errorf("%d sessions are answered %v", sessions, got)
	}
	served("too many sessions")
	r.change(quota(&api.Quota{Who: "token:bob", Sessions: 2000, Claims: 3000, Bytes: 4 << 20}))
}

// fillTheState grows the state to its limit while one server is down. That server then receives the
// whole state.
func (r *ruled) fillTheState(late int, admin *stream) {
	r.Helper()
	var values []*api.Request
	for i := range 300 {
		values = append(values, &api.Request{Op: &api.Request_Acquire{Acquire: &api.Acquire{Class: api.Class_CLASS_ELECTION, Name: fmt.Sprint("full/", i), Value: make([]byte, 64<<10)}}})
	}
	got := make(answers)
	for _, v := range values { // a frame has a maximum size
		got[admin.reply(admin.send(v)).GetCode()]++
	}
	if got[api.Code_CODE_STATE_LIMIT] == 0 || got[api.Code_CODE_OK]+got[api.Code_CODE_STATE_LIMIT] != len(values) {
		r.Errorf("values beyond the limit are answered %v", got)
	}
	admin.expect(admin.send(renewal()), api.Code_CODE_OK)
	r.cluster.Restart(late)
	servertest.Eventually(r.T, "the server that was down has all of it", func() bool {
		now, err := r.as("victor").Status(r.within(), &api.StatusRequest{})
		if err != nil {
			return false
		}
		there, err := api.NewConclaveClient(r.with(late, r.tokens["victor"])).Status(r.within(), &api.StatusRequest{})
		return err == nil && there.GetAppliedIndex() >= now.GetAppliedIndex() && there.GetStateBytes() == now.GetStateBytes()
	})
	admin.expect(admin.send(closing()), api.Code_CODE_OK)
}

// exhaustTheServer sends floods over many streams, opens more streams and watches than one caller
// may, and opens connections without sending anything.
func exhaustTheServer(w *world) {
	r := w.withRules(1)
	r.change(role("floods", `allow read,hold on prefix "flood/"`), bind("token:dave", "floods"))
	r.tooManyStreams()
	r.tooManyRequests()
	const ttl = 16 * time.Second
	ctx, stop := context.WithCancel(r.within())
	defer stop()
	var flooding sync.WaitGroup
	var answered atomic.Int64
	for range 64 {
		r.floodOver(ctx, &flooding, &answered)
	}
	r.connectSilently()
	victim := r.attachTo(r.within(), r.as("bob"), newSecret()).open(ttl)
	held := victim.expect(victim.send(acquiring("reports/victim")), api.Code_CODE_OK)
	for begun := time.Now(); time.Since(begun) < ttl/2; {
		asked := time.Now()
		if renewed := victim.expect(victim.send(renewal()), api.Code_CODE_OK); len(renewed.GetRevoked()) > 0 {
			r.Errorf("the victim is told %v", renewed)
		}
		mine := victim.expect(victim.send(acquiring("reports/own")), api.Code_CODE_OK)
		victim.expect(victim.send(releasing(mine.GetSequence())), api.Code_CODE_OK)
		if took := time.Since(asked); took > ttl/2 { // the client renews after a third of the TTL
			r.Errorf("a renewal, an acquisition and a release took %v", took)
		}
		time.Sleep(ttl / 80) // the program works
	}
	if x, err := r.admin.Explain(r.within(), &api.ExplainRequest{Name: "reports/victim"}); err != nil || x.GetResource().GetHolders()[0].GetFence() != held.GetFence() {
		r.Errorf("the victim's lock is %v, %v", x, err)
	}
	if answered.Load() < 1000 {
		r.Errorf("the flood had %d answers: it was none", answered.Load())
	}
	stop()
	flooding.Wait()
}

// tooManyRequests sends more requests per second than the principal may.
func (r *ruled) tooManyRequests() {
	r.Helper()
	const most, sent = 20, 2000
	r.change(quota(&api.Quota{Who: "token:dave", Requests: most}))
	servertest.Eventually(r.T, "the server has seen the end of the many streams", func() bool {
		ctx, end := context.WithCancel(r.within())
		defer end()
		one, err := r.as("dave").Attach(ctx)
		if err == nil {
			_, err = one.Recv()
		}
		return err == nil
	})
	hasty := r.stream("dave")
	begun := time.Now()
	kept := hasty.expect(hasty.send(acquiring("flood/kept")), api.Code_CODE_OK)
	var many, renewals []*api.Request
	for i := range sent {
		many, renewals = append(many, acquiring(fmt.Sprint("flood/", i))), append(renewals, renewal())
	}
	got := hasty.flood(many...)
	if allowed := most * (2 + int(time.Since(begun)/time.Second)); got[api.Code_CODE_OK] > allowed || got[api.Code_CODE_OK]+got[api.Code_CODE_QUOTA] != sent {
		r.Errorf("%d requests at once are answered %v; at most %d are allowed", sent, got, allowed)
	}
	if got := hasty.flood(renewals...); got[api.Code_CODE_OK] == 0 || got[api.Code_CODE_QUOTA] != 0 {
		r.Errorf("%d renewals at once are answered %v", sent, got)
	}
	hasty.expect(hasty.send(releasing(kept.GetSequence())), api.Code_CODE_OK)
	hasty.expect(hasty.send(closing()), api.Code_CODE_OK)
	r.change(quota(&api.Quota{Who: "token:dave", Requests: 1}))
	client, refused := r.as("dave"), 0
	for range most {
		_, err := client.List(r.within(), &api.ListRequest{})
		if status.Code(err) == codes.ResourceExhausted {
			refused++
		}
		if _, err := client.Ping(r.within(), &api.PingRequest{}); err != nil {
			r.Fatal(err)
		}
	}
	if refused == 0 {
		r.Error("no single call is refused")
	}
	req := r.request(1, "GET", "/v1/locks", "")
	req.Header.Set("Authorization", "Bearer "+r.tokens["dave"])
	servertest.Eventually(r.T, "HTTP tells it", func() bool {
		code, _ := r.send(nil, req)
		return code == http.StatusTooManyRequests
	})
	if _, err := r.as("bob").List(r.within(), &api.ListRequest{}); err != nil {
		r.Errorf("another principal is refused: %v", err)
	}
	r.change(&api.AccessEdit{Edit: &api.AccessEdit_DropQuota{DropQuota: &api.Quota{Who: "token:dave"}}})
}

// window is the number of unanswered requests of a flood on each stream.
const window = 256

// floodOver sends renewals, and releases without a hold, over a stream until ctx is cancelled.
func (r *ruled) floodOver(ctx context.Context, flooding *sync.WaitGroup, answered *atomic.Int64) {
	r.Helper()
	client := r.as("dave")
	flooding.Go(func() {
		flood, err := client.Attach(ctx)
		if err != nil {
			r.Error(err)
			return
		}
		secret := newSecret()
		room := make(chan struct{}, window)
		flooding.Go(func() {
			for {
				frame, err := flood.Recv()
				if err != nil {
					return
				}
				answered.Add(int64(len(frame.GetReplies())))
				for range frame.GetReplies() {
					select {
					case <-room:
					default: // one answer can cover several renewals
					}
				}
			}
		})
		for next := uint64(1); ; {
			frame := new(api.ClientFrame)
			for i := range window / 2 {
				select {
				case room <- struct{}{}:
				case <-ctx.Done():
					return
				}
				req := opening(time.Minute)
				switch {
				case next == 1:
				case i%2 == 0:
					req = renewal()
				default:
					req = releasing(1)
				}
				req.Session, req.Sequence, req.Low = secret, next, next
				next++
				frame.Requests = append(frame.Requests, req)
			}
			if flood.Send(frame) != nil {
				return
			}
		}
	})
}

// tooManyStreams opens streams and watches until the server refuses one.
func (r *ruled) tooManyStreams() {
	r.Helper()
	dave := r.as("dave")
	ctx, stop := context.WithCancel(r.within())
	defer stop()
	refused := func(what string, most int, open func() error) {
		for n := 0; ; n++ {
			err := open()
			if err == nil && n <= most {
				continue
			}
			if n > most || status.Code(err) != codes.ResourceExhausted {
				r.Errorf("after %d %s: %v", n, what, err)
			}
			return
		}
	}
	refused("streams", 256, func() error {
		more, err := dave.Attach(ctx)
		if err == nil {
			_, err = more.Recv() // the welcome
		}
		return err
	})
	refused("watches", 1000, func() error {
		more, err := dave.Watch(ctx, &api.WatchRequest{Prefix: "flood/"})
		if err == nil {
			_, err = more.Recv() // the current holders
		}
		return err
	})
}

// connectSilently opens more connections without data than the server keeps. The server closes
// each silent connection after 10 s. One that is closed sooner made room for others.
func (r *ruled) connectSilently() {
	r.Helper()
	const silent, patience = 1500, 10 * time.Second
	var closed, displaced atomic.Int64
	for range silent {
		begun := time.Now()
		conn, err := net.Dial("tcp", r.cluster.Address(1))
		if err != nil {
			r.Fatal(err)
		}
		r.Cleanup(func() { conn.Close() })
		go func() {
			if _, err := io.Copy(io.Discard, conn); err == nil {
				closed.Add(1)
				if time.Since(begun) < patience {
					displaced.Add(1)
				}
			}
		}()
	}
	servertest.Eventually(r.T, "the oldest of the connections that say nothing are closed", func() bool { return closed.Load() >= silent-1024 })
	if displaced.Load() == 0 {
		r.Error("no silent connection makes room for others")
	}
}

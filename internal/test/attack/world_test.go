package attack

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// testTimeout is the maximum time for any step on a busy machine.
const testTimeout = time.Minute

func (a *attack) name() string { return fmt.Sprintf("attack%02d", a.number) }

// target is a cluster under attack.
type target struct {
	cluster *servertest.Cluster
	// servers signs the certificates of servers, and clients those of clients. Both are nil in a
	// cluster without certificates.
	servers, clients *servertest.Authority
	log              *journal
}

// newTarget starts a cluster of three servers.
func newTarget(t *testing.T, secure bool) *target {
	t.Helper()
	g := &target{log: new(journal)}
	adjust := []func(*config.Server){func(cfg *config.Server) {
		cfg.Log = slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}}
	if secure {
		g.servers, g.clients = servertest.NewAuthority(t), servertest.NewAuthority(t)
		adjust = append(adjust, g.servers.Secure, func(cfg *config.Server) { cfg.TLSCA = g.clients.File })
	}
	g.cluster = servertest.Start(t, 3, adjust...)
	return g
}

// journal keeps the log output of servers.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// world is the environment of one attack.
type world struct {
	*testing.T
	*target
	// prefix is the prefix of all names in the attack.
	prefix string
}

func (w *world) within() context.Context {
	ctx, cancel := context.WithTimeout(w.Context(), testTimeout)
	w.Cleanup(cancel)
	return ctx
}

// certificate returns the TLS configuration of a client with the given name.
func (w *world) certificate(name string) *tls.Config {
	if w.clients == nil {
		return nil
	}
	return w.shown(w.clients.Client(name))
}

// shown completes the TLS configuration of a client. The certificate may come from any authority.
func (w *world) shown(client *tls.Config) *tls.Config {
	client.RootCAs = w.servers.Trusting().RootCAs
	return client
}

// dial returns a gRPC client of one server.
func (w *world) dial(id int, secrecy *tls.Config, options ...grpc.DialOption) (api.ConclaveClient, *grpc.ClientConn) {
	w.Helper()
	return w.dialAt(w.cluster.Address(id), secrecy, options...)
}

func (w *world) dialAt(address string, secrecy *tls.Config, options ...grpc.DialOption) (api.ConclaveClient, *grpc.ClientConn) {
	w.Helper()
	creds := insecure.NewCredentials()
	if secrecy != nil {
		creds = credentials.NewTLS(secrecy)
	}
	options = append(options, grpc.WithTransportCredentials(creds), grpc.WithNoProxy())
	conn, err := grpc.NewClient("passthrough:///"+address, options...)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { conn.Close() })
	return api.NewConclaveClient(conn), conn
}

// do sends one request over gRPC and returns its reply.
func (w *world) do(client api.ConclaveClient, session []byte, r *api.Request) *api.Reply {
	w.Helper()
	r.Session = session
	reply, err := client.Do(w.within(), r)
	if err != nil {
		w.Fatalf("%v: %v", r, err)
	}
	return reply
}

// must is like do, but requires success.
func (w *world) must(client api.ConclaveClient, session []byte, r *api.Request) *api.Reply {
	w.Helper()
	reply := w.do(client, session, r)
	if reply.GetCode() != api.Code_CODE_OK {
		w.Fatalf("%v is answered with %v", r, reply)
	}
	return reply
}

// page sends one request over HTTP and returns the status and the body.
func (w *world) page(id int, secrecy *tls.Config, method, path, body string) (int, string) {
	w.Helper()
	return w.send(secrecy, w.request(id, method, path, body))
}

// request creates an HTTP request to a server.
func (w *world) request(id int, method, path, body string) *http.Request {
	w.Helper()
	req, err := http.NewRequestWithContext(w.within(), method, "//"+w.cluster.Address(id)+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	return req
}

// send sends a request over HTTP and returns the status and the body.
func (w *world) send(secrecy *tls.Config, req *http.Request) (int, string) {
	w.Helper()
	client := http.Client{Transport: &http.Transport{TLSClientConfig: secrecy}, Timeout: testTimeout}
	defer client.CloseIdleConnections()
	req.URL.Scheme = "http"
	if secrecy != nil {
		req.URL.Scheme = "https"
	}
	resp, err := client.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// object sends one HTTP request and decodes the answer, which is a JSON object.
func (w *world) object(id int, secrecy *tls.Config, method, path, body string) map[string]any {
	w.Helper()
	_, text := w.page(id, secrecy, method, path, body)
	var found map[string]any
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		w.Fatalf("%s %s: %s: %v", method, path, text, err)
	}
	return found
}

// The requests, without session and sequence number.

func opening(ttl time.Duration) *api.Request {
	return &api.Request{Op: &api.Request_Open{Open: &api.Open{TtlNs: int64(ttl), Host: "a7", Pid: 42, Program: "report"}}}
}

func renewal() *api.Request { return &api.Request{Op: &api.Request_Renew{Renew: &api.Renew{}}} }

func closing() *api.Request { return &api.Request{Op: &api.Request_Close{Close: &api.Close{}}} }

func acquiring(name string) *api.Request {
	return &api.Request{Op: &api.Request_Acquire{Acquire: &api.Acquire{Name: name}}}
}

func releasing(hold uint64) *api.Request {
	return &api.Request{Op: &api.Request_Release{Release: &api.Release{Hold: hold}}}
}

func newSecret() []byte {
	secret := make([]byte, 16)
	rand.Read(secret)
	return secret
}

// stream is an Attach stream with one session.
type stream struct {
	*world
	secret, id []byte
	next       uint64
	api.Conclave_AttachClient
	early map[uint64][]*api.Reply // replies that arrived before the test waited for them
}

// attach opens a stream to the leader.
func (w *world) attach(secrecy *tls.Config, secret []byte) *stream {
	w.Helper()
	client, _ := w.dial(w.cluster.Leader(), secrecy)
	return w.attachTo(w.within(), client, secret)
}

func (w *world) attachTo(ctx context.Context, client api.ConclaveClient, secret []byte) *stream {
	w.Helper()
	raw, err := client.Attach(ctx)
	if err != nil {
		w.Fatal(err)
	}
	if first, err := raw.Recv(); err != nil || first.GetWelcome() == nil {
		w.Fatal(first, err)
	}
	return &stream{world: w, secret: secret, next: 1, Conclave_AttachClient: raw, early: make(map[uint64][]*api.Reply)}
}

// send sends requests in one frame and returns the sequence number of the first.
func (s *stream) send(requests ...*api.Request) uint64 {
	s.Helper()
	first := s.next
	for _, r := range requests {
		r.Session, r.Sequence, r.Low = s.secret, s.next, first
		s.next++
	}
	if err := s.Send(&api.ClientFrame{Requests: requests}); err != nil {
		s.Fatal(err)
	}
	return first
}

// reply waits for the next reply to a request.
func (s *stream) reply(sequence uint64) *api.Reply {
	s.Helper()
	for len(s.early[sequence]) == 0 {
		s.receive()
	}
	r := s.early[sequence][0]
	s.early[sequence] = s.early[sequence][1:]
	return r
}

func (s *stream) receive() {
	s.Helper()
	frame, err := s.Recv()
	if err != nil || frame.GetFarewell() != nil {
		s.Fatalf("the stream ends with %v, %v", frame, err)
	}
	for _, r := range frame.GetReplies() {
		if !bytes.Equal(r.GetSession(), s.secret) {
			s.Errorf("a reply is for the session %x, which is not on this stream", r.GetSession())
		}
		s.early[r.GetSequence()] = append(s.early[r.GetSequence()], r)
	}
}

func (s *stream) expect(sequence uint64, want api.Code) *api.Reply {
	s.Helper()
	r := s.reply(sequence)
	if r.GetCode() != want {
		s.Fatalf("request %d is answered with %v, want %v", sequence, r, want)
	}
	return r
}

// open opens the session of the stream.
func (s *stream) open(ttl time.Duration) *stream {
	s.Helper()
	s.id = s.expect(s.send(opening(ttl)), api.Code_CODE_OK).GetId()
	return s
}

// holder returns the description of a hold by the servers.
func (w *world) holder(secrecy *tls.Config, name string) *api.Holder {
	w.Helper()
	client, _ := w.dial(w.cluster.Leader(), secrecy)
	x, err := client.Explain(w.within(), &api.ExplainRequest{Name: name})
	if err != nil || len(x.GetResource().GetHolders()) != 1 {
		w.Fatalf("%q has the holders %v, %v; want one", name, x.GetResource().GetHolders(), err)
	}
	return x.GetResource().GetHolders()[0]
}

// victim is a program with a lock.
type victim struct {
	w      *world
	client *conclave.Client
	lock   *conclave.Lock
	name   string
	before *api.Holder
}

func (w *world) program() *conclave.Client {
	w.Helper()
	client, err := conclave.Dial(w.within(), conclave.Config{Servers: w.cluster.Addresses(), TTL: 30 * time.Second, Program: "victim"})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { client.Close() })
	return client
}

func (w *world) victim() *victim {
	w.Helper()
	v := &victim{w: w, client: w.program(), name: w.prefix + "lock"}
	var err error
	if v.lock, err = v.client.Lock(w.within(), v.name); err != nil {
		w.Fatal(err)
	}
	v.before = w.holder(nil, v.name)
	return v
}

// same requires that the victim was not affected.
func (v *victim) same(after string) {
	v.w.Helper()
	if err := v.lock.Context().Err(); err != nil {
		v.w.Fatalf("after %s the victim's context has ended: %v", after, context.Cause(v.lock.Context()))
	}
	if fence, err := v.lock.Fence(); err != nil || fence != v.before.GetFence() {
		v.w.Fatalf("after %s the victim's fence is %d, %v; before it was %d", after, fence, err, v.before.GetFence())
	}
	v.w.unchanged(nil, v.name, v.before, after)
}

// unchanged requires that a lock still has the given holder.
func (w *world) unchanged(secrecy *tls.Config, name string, before *api.Holder, after string) {
	w.Helper()
	now := w.holder(secrecy, name)
	if now.GetFence() != before.GetFence() || !bytes.Equal(now.GetSession(), before.GetSession()) || now.GetSequence() != before.GetSequence() || now.GetRevoked() {
		w.Fatalf("after %s %q has the holder %v; before it was %v", after, name, now, before)
	}
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }

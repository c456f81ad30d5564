package server_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/conclave-io/conclave/api"
)

// limit bounds every call of these tests.
const limit = time.Minute

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// dial returns a gRPC client of a server. With secrecy it uses TLS.
func dial(t *testing.T, address string, secrecy *tls.Config) api.ConclaveClient {
	t.Helper()
	creds := insecure.NewCredentials()
	if secrecy != nil {
		creds = credentials.NewTLS(secrecy)
	}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(creds), grpc.WithNoProxy())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return api.NewConclaveClient(conn)
}

func newSession() []byte {
	id := make([]byte, 16)
	rand.Read(id)
	return id
}

// The requests of these tests, without session and number.

func open(ttl time.Duration) *api.Request {
	return &api.Request{Op: &api.Request_Open{Open: &api.Open{TtlNs: int64(ttl), Host: "here", Pid: 7, Program: "test"}}}
}

func renew() *api.Request { return &api.Request{Op: &api.Request_Renew{Renew: &api.Renew{}}} }

func closing() *api.Request { return &api.Request{Op: &api.Request_Close{Close: &api.Close{}}} }

func acquire(name string) *api.Request {
	return &api.Request{Op: &api.Request_Acquire{Acquire: &api.Acquire{Name: name}}}
}

func try(name string) *api.Request {
	return &api.Request{Op: &api.Request_Acquire{Acquire: &api.Acquire{Name: name, Try: true}}}
}

func campaign(name, value string) *api.Request {
	return &api.Request{Op: &api.Request_Acquire{Acquire: &api.Acquire{Class: api.Class_CLASS_ELECTION, Name: name, Value: []byte(value)}}}
}

func release(hold uint64) *api.Request {
	return &api.Request{Op: &api.Request_Release{Release: &api.Release{Hold: hold}}}
}

func cancel(hold uint64) *api.Request {
	return &api.Request{Op: &api.Request_Cancel{Cancel: &api.Cancel{Hold: hold}}}
}

func update(hold uint64, value string) *api.Request {
	return &api.Request{Op: &api.Request_Update{Update: &api.Update{Hold: hold, Value: []byte(value)}}}
}

// stream is an Attach stream with one session.
type stream struct {
	t       *testing.T
	session []byte
	next    uint64
	api.Conclave_AttachClient
	welcome  *api.Welcome
	farewell *api.Farewell
	servers  []string                // where clients were last told to go
	early    map[uint64][]*api.Reply // replies that nobody waited for yet
}

// attach opens a stream.
func attach(t *testing.T, client api.ConclaveClient) *stream {
	t.Helper()
	return attachWithin(within(t), t, client)
}

func attachWithin(ctx context.Context, t *testing.T, client api.ConclaveClient) *stream {
	t.Helper()
	raw, err := client.Attach(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{t: t, session: newSession(), next: 1, Conclave_AttachClient: raw, early: make(map[uint64][]*api.Reply)}
	first, err := raw.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if s.welcome = first.GetWelcome(); s.welcome == nil {
		t.Fatalf("the first frame is %v, not a welcome", first)
	}
	return s
}

// send sends requests of the stream's session in one frame and returns the
// number of the first.
func (s *stream) send(requests ...*api.Request) uint64 {
	s.t.Helper()
	first := s.next
	for _, r := range requests {
		r.Session, r.Sequence, r.Low = s.session, s.next, 1
		s.next++
	}
	s.sendRaw(requests...)
	return first
}

func (s *stream) sendRaw(requests ...*api.Request) {
	s.t.Helper()
	if err := s.Send(&api.ClientFrame{Requests: requests}); err != nil {
		frame, why := s.Recv() // what the server said before it ended the stream
		s.t.Fatalf("while sending: %v, %v: %v", err, frame, why)
	}
}

// reply waits for the next reply to a request.
func (s *stream) reply(sequence uint64) *api.Reply {
	s.t.Helper()
	for len(s.early[sequence]) == 0 {
		frame, err := s.Recv()
		if err != nil {
			s.t.Fatalf("while waiting for a reply to %d: %v", sequence, err)
		}
		if frame.GetFarewell() != nil {
			s.t.Fatalf("while waiting for a reply to %d: %v", sequence, frame.GetFarewell())
		}
		if at := frame.GetServers(); len(at) > 0 {
			s.servers = at
		}
		for _, r := range frame.GetReplies() {
			s.early[r.GetSequence()] = append(s.early[r.GetSequence()], r)
		}
	}
	r := s.early[sequence][0]
	s.early[sequence] = s.early[sequence][1:]
	return r
}

// do sends one request and waits for its first reply, which must have the code.
func (s *stream) do(request *api.Request, want api.Code) *api.Reply {
	s.t.Helper()
	return s.expect(s.send(request), want)
}

func (s *stream) expect(sequence uint64, want api.Code) *api.Reply {
	s.t.Helper()
	r := s.reply(sequence)
	if r.GetCode() != want {
		s.t.Fatalf("request %d is answered with %v, want %v", sequence, r, want)
	}
	return r
}

// end reads to the end of the stream, and keeps the farewell.
func (s *stream) end() error {
	for {
		frame, err := s.Recv()
		if err != nil {
			return err
		}
		if frame.GetFarewell() != nil {
			s.farewell = frame.GetFarewell()
		}
	}
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }

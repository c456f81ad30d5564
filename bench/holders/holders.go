// Package holders opens many sessions that hold many locks. It implements the client side of the
// protocol itself and shares a few connections. The same number of clients in one process would
// mostly measure that process.
package holders

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/conclave-io/conclave/api"
)

// Group is a set of sessions that all have the same number of locks. Only one goroutine at a time
// may use it.
type Group struct {
	Sessions []*Session
	Each     int // number of locks of each session
	TTL      time.Duration
	// Leader returns the address of the leader for clients.
	Leader func(context.Context) (string, error)
}

// Session is a session with at most one unanswered request.
type Session struct {
	Secret []byte
	// Public is the public id, in hexadecimal, once the session is open.
	Public string
	// Answered is the sequence number of the newest answered request.
	Answered uint64
	// Fences are the fences of its locks, in the order in which it acquired them.
	Fences []uint64
}

// New returns sessions that are not open yet.
func New(sessions, each int, ttl time.Duration, leader func(context.Context) (string, error)) *Group {
	c := &Group{Each: each, TTL: ttl, Leader: leader}
	for range sessions {
		s := &Session{Secret: make([]byte, 16)}
		rand.Read(s.Secret)
		c.Sessions = append(c.Sessions, s)
	}
	return c
}

// Request returns the next request of the session, without an operation.
func (s *Session) Request() *api.Request {
	return &api.Request{Session: s.Secret, Sequence: s.Answered + 1, Low: s.Answered + 1}
}

// Renewal returns the next request of the session, with the operation renew.
func (s *Session) Renewal() *api.Request {
	r := s.Request()
	r.Op = &api.Request_Renew{Renew: &api.Renew{}}
	return r
}

// Name returns the name of a lock of a session. Sessions and locks count from 0. The names are in
// the order of the sessions.
func (c *Group) Name(session, lock int) string {
	return fmt.Sprintf("held-%010d", session*c.Each+lock)
}

// Fill opens the sessions and acquires their locks.
func (c *Group) Fill(ctx context.Context) error {
	open := func(_ int, s *Session) *api.Request {
		r := s.Request()
		r.Op = &api.Request_Open{Open: &api.Open{TtlNs: int64(c.TTL), Host: "bench", Pid: 1, Program: "holders"}}
		return r
	}
	opened := func(s *Session, r *api.Reply) { s.Public = hex.EncodeToString(r.GetId()) }
	if err := c.step(ctx, open, opened); err != nil {
		return err
	}
	for lock := range c.Each {
		acquire := func(i int, s *Session) *api.Request {
			r := s.Request()
			r.Op = &api.Request_Acquire{Acquire: &api.Acquire{Name: c.Name(i, lock)}}
			return r
		}
		acquired := func(s *Session, r *api.Reply) { s.Fences = append(s.Fences, r.GetFence()) }
		if err := c.step(ctx, acquire, acquired); err != nil {
			return err
		}
	}
	return nil
}

// Renew renews every session once.
func (c *Group) Renew(ctx context.Context) error {
	return c.step(ctx, func(_ int, s *Session) *api.Request { return s.Renewal() }, func(*Session, *api.Reply) {})
}

// retryPause is the pause before step looks for the leader again.
const retryPause = 100 * time.Millisecond

// step sends one request of every session and processes the answers. If it loses the connection or
// the leader, it sends the unanswered requests again, with the same sequence numbers.
func (c *Group) step(ctx context.Context, make func(int, *Session) *api.Request, take func(*Session, *api.Reply)) error {
	due := uint64(0)
	for _, s := range c.Sessions {
		due = max(due, s.Answered)
	}
	level := true
	for _, s := range c.Sessions {
		level = level && s.Answered == due
	}
	if level {
		due++
	}
	for {
		err := c.attempt(ctx, due, make, take)
		if err == nil || errors.As(err, new(refusal)) {
			return err
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// refusal is an answer that a retry would not change.
type refusal struct{ reply *api.Reply }

func (r refusal) Error() string {
	return fmt.Sprintf("a session was answered %v: %s", r.reply.GetCode(), r.reply.GetMessage())
}

const (
	// MaxSessions is the maximum number of sessions on a stream.
	MaxSessions = 4096
	// streams is the maximum number of streams at the same time.
	streams = 16
	// batch is the maximum number of sessions of a stream with an unanswered request.
	batch = 256
)

func (c *Group) attempt(ctx context.Context, due uint64, make func(int, *Session) *api.Request, take func(*Session, *api.Reply)) error {
	leader, err := c.Leader(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(streams)
	for from := 0; from < len(c.Sessions); from += MaxSessions {
		group.Go(func() error {
			stream, err := Attach(ctx, leader)
			if err != nil {
				return err
			}
			defer stream.Close()
			for to := min(from+MaxSessions, len(c.Sessions)); from < to; {
				until := min(from+batch, to)
				if err := c.exchange(stream, from, until, due, make, take); err != nil {
					return err
				}
				from = until
			}
			return nil
		})
	}
	return group.Wait()
}

// exchange sends the due requests of some sessions, and processes the answers.
func (c *Group) exchange(stream *Stream, from, to int, due uint64, request func(int, *Session) *api.Request, take func(*Session, *api.Reply)) error {
	frame := new(api.ClientFrame)
	waiting := make(map[string]*Session)
	for i := from; i < to; i++ {
		if s := c.Sessions[i]; s.Answered < due {
			frame.Requests = append(frame.Requests, request(i, s))
			waiting[string(s.Secret)] = s
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	if err := stream.Send(frame); err != nil {
		return err
	}
	for len(waiting) > 0 {
		replies, err := stream.Take()
		if err != nil {
			return err
		}
		for _, r := range replies {
			s := waiting[string(r.GetSession())]
			switch code := r.GetCode(); {
			case s == nil || code == api.Code_CODE_QUEUED: // the answer follows
			case code == api.Code_CODE_OK:
				take(s, r)
				s.Answered++
				delete(waiting, string(r.GetSession()))
			case code == api.Code_CODE_UNAVAILABLE, code == api.Code_CODE_NOT_LEADER, code == api.Code_CODE_EXHAUSTED:
				return fmt.Errorf("a session was answered %v: %s", code, r.GetMessage())
			default:
				return refusal{r}
			}
		}
	}
	return nil
}

// Stream is a stream of requests on its own connection to a server.
type Stream struct {
	conn *grpc.ClientConn
	grpc.BidiStreamingClient[api.ClientFrame, api.ServerFrame]
}

// Connect connects to a server.
func Connect(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// Attach opens a stream. It ends when ctx is cancelled.
func Attach(ctx context.Context, address string) (*Stream, error) {
	conn, err := Connect(address)
	if err != nil {
		return nil, err
	}
	s := &Stream{conn: conn}
	if s.BidiStreamingClient, err = api.NewConclaveClient(conn).Attach(ctx); err == nil {
		_, err = s.Take() // the welcome
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, nil
}

// Take returns the replies of the next frame.
func (s *Stream) Take() ([]*api.Reply, error) {
	frame, err := s.Recv()
	if err != nil {
		return nil, err
	}
	if f := frame.GetFarewell(); f != nil {
		return nil, fmt.Errorf("the server ends the stream: %v: %s", f.GetCode(), f.GetMessage())
	}
	return frame.GetReplies(), nil
}

// Close closes the connection. The sessions stay open.
func (s *Stream) Close() error { return s.conn.Close() }

// page is the number of locks in one read.
const page = 1000

// Scan reads all locks whose names start with a prefix, page by page. It stops when see returns an
// error.
func Scan(ctx context.Context, conn *grpc.ClientConn, prefix string, see func([]*api.Resource) error) error {
	client := api.NewConclaveClient(conn)
	for request := (&api.ListRequest{Prefix: prefix, Limit: page}); ; {
		answer, err := client.List(ctx, request)
		if err != nil {
			return err
		}
		all := answer.GetResources()
		if err := see(all); err != nil {
			return err
		}
		if !answer.GetMore() || len(all) == 0 {
			return nil
		}
		request.After = all[len(all)-1].GetName()
	}
}

// Backup reads a backup and returns its size in bytes.
func Backup(ctx context.Context, conn *grpc.ClientConn) (size int, err error) {
	stream, err := api.NewConclaveClient(conn).Backup(ctx, &api.BackupRequest{})
	if err != nil {
		return 0, err
	}
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return size, err
		}
		size += len(chunk.GetData())
	}
}

// Verify fails unless every session holds each of its locks, alone and with the fence of the grant.
func (c *Group) Verify(ctx context.Context) error {
	leader, err := c.Leader(ctx)
	if err != nil {
		return err
	}
	conn, err := Connect(leader)
	if err != nil {
		return err
	}
	defer conn.Close()
	seen := 0
	err = Scan(ctx, conn, "held-", func(all []*api.Resource) error {
		for _, res := range all {
			if err := c.verify(seen, res); err != nil {
				return err
			}
			seen++
		}
		return nil
	})
	if want := len(c.Sessions) * c.Each; err == nil && seen < want {
		err = fmt.Errorf("lock %q is not held, nor is any after it", c.Name(seen/c.Each, seen%c.Each))
	}
	return err
}

// verify checks the lock with the i-th name.
func (c *Group) verify(i int, res *api.Resource) error {
	if i/c.Each >= len(c.Sessions) {
		return fmt.Errorf("lock %q is held: no session acquired it", res.GetName())
	}
	s, lock := c.Sessions[i/c.Each], i%c.Each
	want := fmt.Sprintf("%s: %s %d", c.Name(i/c.Each, lock), s.Public, s.Fences[lock])
	var holders []string
	for _, h := range res.GetHolders() {
		holders = append(holders, fmt.Sprintf("%s %d", hex.EncodeToString(h.GetSession()), h.GetFence()))
	}
	if got := res.GetName() + ": " + strings.Join(holders, ", "); got != want {
		return fmt.Errorf("the lock is held as %q: expected %q", got, want)
	}
	return nil
}

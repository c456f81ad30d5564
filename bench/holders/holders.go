// Package holders has many sessions that hold many locks. It speaks the protocol
// itself and shares a few connections: as many clients in one process would measure
// that process.
package holders

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/conclave-io/conclave/service/api"
)

// Crowd is sessions, each with as many locks as the others. Its methods are not for
// several goroutines at once.
type Crowd struct {
	Sessions []*Session
	Each     int // locks of a session
	TTL      time.Duration
	// Leader returns where the leader takes clients.
	Leader func(context.Context) (string, error)
}

// Session is a session that has one request unanswered at most.
type Session struct {
	Secret []byte
	// Public is the public id, in hexadecimal, once the session is open.
	Public string
	// Answered is the sequence of the newest request that was answered.
	Answered uint64
	// Fences are those of its locks, in the order in which it acquired them.
	Fences []uint64
}

// New makes sessions that are not open yet.
func New(sessions, each int, ttl time.Duration, leader func(context.Context) (string, error)) *Crowd {
	c := &Crowd{Each: each, TTL: ttl, Leader: leader}
	for range sessions {
		s := &Session{Secret: make([]byte, 16)}
		rand.Read(s.Secret)
		c.Sessions = append(c.Sessions, s)
	}
	return c
}

// Request returns the next request of the session, without what it asks for.
func (s *Session) Request() *api.Request {
	return &api.Request{Session: s.Secret, Sequence: s.Answered + 1, Low: s.Answered + 1}
}

// Renewal returns the next request of the session, which renews it.
func (s *Session) Renewal() *api.Request {
	r := s.Request()
	r.Op = &api.Request_Renew{Renew: &api.Renew{}}
	return r
}

// Name is the name of a lock of a session, both counted from 0. The order of names
// is that of sessions.
func (c *Crowd) Name(session, lock int) string {
	return fmt.Sprintf("held-%010d", session*c.Each+lock)
}

// Fill opens the sessions and acquires their locks.
func (c *Crowd) Fill(ctx context.Context) error {
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
func (c *Crowd) Renew(ctx context.Context) error {
	return c.step(ctx, func(_ int, s *Session) *api.Request { return s.Renewal() }, func(*Session, *api.Reply) {})
}

// breath is the pause before the leader is looked for again.
const breath = 100 * time.Millisecond

// step has every session make a request and take its answer. When a connection or a
// leader is lost, what has no answer is asked again, with the same sequence.
func (c *Crowd) step(ctx context.Context, make func(int, *Session) *api.Request, take func(*Session, *api.Reply)) error {
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
		case <-time.After(breath):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// refusal is an answer that no other attempt would change.
type refusal struct{ reply *api.Reply }

func (r refusal) Error() string {
	return fmt.Sprintf("a session was answered %v: %s", r.reply.GetCode(), r.reply.GetMessage())
}

const (
	// MaxSessions is how many sessions a stream carries.
	MaxSessions = 4096
	// streams is how many there are at a time.
	streams = 16
	// batch is how many sessions of a stream have a request unanswered at a time.
	batch = 256
)

func (c *Crowd) attempt(ctx context.Context, due uint64, make func(int, *Session) *api.Request, take func(*Session, *api.Reply)) error {
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

// exchange sends the requests of some sessions that are due, and takes the answers.
func (c *Crowd) exchange(stream *Stream, from, to int, due uint64, request func(int, *Session) *api.Request, take func(*Session, *api.Reply)) error {
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

// Stream is a connection of its own to a server, with one stream of requests.
type Stream struct {
	conn *grpc.ClientConn
	grpc.BidiStreamingClient[api.ClientFrame, api.ServerFrame]
}

// Connect connects to a server.
func Connect(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// Attach opens a stream, which ends with ctx.
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

// Close breaks the connection. The sessions live on.
func (s *Stream) Close() error { return s.conn.Close() }

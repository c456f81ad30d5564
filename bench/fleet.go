package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/bench/holders"
)

// fleet is a set of sessions that only renew, as the client does with an idle session. Ten thousand
// clients in one process would mostly measure that process. So many sessions share a connection,
// which the protocol allows.
type fleet struct {
	ttl      time.Duration
	streams  []*stream
	renewals atomic.Int64 // that were answered OK
	refused  atomic.Int64 // answers of any other kind
}

// stream is one connection with its sessions.
type stream struct {
	*holders.Stream
	fleet    *fleet
	sessions []*member
}

type member struct {
	id       []byte
	sequence uint64
}

func (m *member) request() *api.Request {
	m.sequence++
	return &api.Request{Session: m.id, Sequence: m.sequence, Low: m.sequence}
}

// launch opens sessions at the leader. If locks is true, each session holds a lock.
func launch(ctx context.Context, leader string, sessions, connections int, ttl time.Duration, locks bool) (*fleet, error) {
	f := &fleet{ttl: ttl}
	for i := range connections {
		attached, err := holders.Attach(ctx, leader)
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		s := &stream{Stream: attached, fleet: f}
		f.streams = append(f.streams, s)
		for range (sessions + connections - 1 - i) / connections {
			m := &member{id: make([]byte, 16)}
			rand.Read(m.id)
			s.sessions = append(s.sessions, m)
		}
	}
	steps := []func(*member) *api.Request{func(m *member) *api.Request {
		r := m.request()
		r.Op = &api.Request_Open{Open: &api.Open{TtlNs: int64(ttl), Host: "bench", Pid: 1, Program: "fleet"}}
		return r
	}}
	if locks {
		steps = append(steps, func(m *member) *api.Request {
			r := m.request()
			r.Op = &api.Request_Acquire{Acquire: &api.Acquire{Name: fmt.Sprintf("fleet-%x", m.id)}}
			return r
		})
	}
	for _, step := range steps {
		if err := f.all(step); err != nil {
			return nil, errors.Join(err, f.close())
		}
	}
	return f, nil
}

// all sends one request for every session and waits until all answers are OK.
func (f *fleet) all(make func(*member) *api.Request) error {
	var streams errgroup.Group
	for _, s := range f.streams {
		streams.Go(func() error {
			for _, m := range s.sessions {
				if err := s.Send(&api.ClientFrame{Requests: []*api.Request{make(m)}}); err != nil {
					return err
				}
			}
			return s.await(len(s.sessions))
		})
	}
	return streams.Wait()
}

// await reads until n requests were answered with OK.
func (s *stream) await(n int) error {
	for n > 0 {
		replies, err := s.Take()
		if err != nil {
			return err
		}
		for _, r := range replies {
			if r.GetCode() != api.Code_CODE_OK {
				return fmt.Errorf("a session is answered %v: %s", r.GetCode(), r.GetMessage())
			}
			n--
		}
	}
	return nil
}

func renewal(m *member) *api.Request {
	r := m.request()
	r.Op = &api.Request_Renew{Renew: &api.Renew{}}
	return r
}

// renew renews every session every TTL/4, evenly distributed over that time. It ends when ctx is
// cancelled or a stream breaks.
func (f *fleet) renew(ctx context.Context) error {
	var streams errgroup.Group
	for i, s := range f.streams {
		if len(s.sessions) == 0 {
			continue
		}
		late := f.ttl / 4 * time.Duration(i) / time.Duration(len(f.streams)) / time.Duration(len(s.sessions))
		streams.Go(func() error { return s.keep(ctx, late) })
	}
	return streams.Wait()
}

func (s *stream) keep(ctx context.Context, late time.Duration) error {
	broken := make(chan error, 1)
	go func() { broken <- s.count() }()
	if pause(ctx, late) != nil {
		return nil
	}
	turn := time.NewTicker(s.fleet.ttl / 4 / time.Duration(len(s.sessions)))
	defer turn.Stop()
	for i := 0; ; i++ {
		select {
		case <-turn.C:
		case err := <-broken:
			return err
		case <-ctx.Done():
			return nil
		}
		frame := &api.ClientFrame{Requests: []*api.Request{renewal(s.sessions[i%len(s.sessions)])}}
		if err := s.Send(frame); err != nil {
			return err
		}
	}
}

// count counts answers until the stream ends.
func (s *stream) count() error {
	for {
		replies, err := s.Take()
		if err != nil {
			return err
		}
		for _, r := range replies {
			if r.GetCode() == api.Code_CODE_OK {
				s.fleet.renewals.Add(1)
			} else {
				s.fleet.refused.Add(1)
			}
		}
	}
}

// close closes the connections. The sessions expire.
func (f *fleet) close() error {
	var problems []error
	for _, s := range f.streams {
		problems = append(problems, s.Close())
	}
	return errors.Join(problems...)
}

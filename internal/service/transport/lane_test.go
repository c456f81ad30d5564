package transport

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/peering"
)

// framing has two servers read the level of frames.
func framing(c *Config) {
	c.MaxLevel, c.FrameLevel = 3, 3
	c.BackoffMin, c.BackoffMax = time.Millisecond, time.Millisecond
}

// TestFramesAcrossBrokenLanes breaks the lane again and again while frames flow. The
// frames of one lane arrive in order and once, and a closed lane carries no more frames.
func TestFramesAcrossBrokenLanes(t *testing.T) {
	a, b := pair(t, framing)
	a.CarryFrames(true)
	if lanes := get(b.recorder, &b.lanes); len(lanes) > 0 {
		t.Errorf("server 2 has %d lanes and asked for none", len(lanes))
	}
	sent, came := 0, 0
	for round := range 20 {
		lane := a.lane(t, came)
		before := len(get(b.recorder, &b.frames))
		eventually(t, "frames arrive", func() bool {
			for range 10 {
				sent++
				lane.Send(fmt.Append(nil, sent))
			}
			return len(get(b.recorder, &b.frames)) > before
		})
		came = len(get(a.recorder, &a.lanes))
		if round%2 == 0 {
			lane.connection.close()
		} else {
			b.CloseFrames(1)
		}
		eventually(t, "the lane is gone", func() bool { return len(get(a.recorder, &a.lanes)) > came })
		lane.Send([]byte("late"))
		came++
	}
	lanes := get(a.recorder, &a.lanes)
	for i, lane := range lanes {
		if (lane == nil) != (i%2 == 1) {
			t.Fatalf("the handler was told of %v", lanes)
		}
	}
	last := 0
	for _, f := range get(b.recorder, &b.frames) {
		n, err := strconv.Atoi(f)
		if err != nil || n <= last {
			t.Fatalf("frame %q arrived after %d", f, last)
		}
		last = n
	}
}

// TestFramesThatCannotBeTaken: the connection is closed, so that they are sent again.
func TestFramesThatCannotBeTaken(t *testing.T) {
	a, b := pair(t, framing)
	b.locked(func() { b.refuse = "two" })
	a.CarryFrames(true)
	lane := a.lane(t, 0)
	for _, text := range []string{"one", "two", "three"} {
		lane.Send([]byte(text))
	}
	a.lane(t, 2).Send([]byte("two"))
	eventually(t, "the next lane carries them", func() bool {
		return slices.Equal(get(b.recorder, &b.frames), []string{"one", "two"})
	})
}

// TestLanesUnderTLS: a lane is a connection as the others are.
func TestLanesUnderTLS(t *testing.T) {
	ca := newAuthority(t)
	a, b := pair(t, func(c *Config) {
		framing(c)
		ca.secure(t, c)
	})
	a.CarryFrames(true)
	a.lane(t, 0).Send([]byte("frame"))
	eventually(t, "the frame arrives", func() bool { return slices.Equal(get(b.recorder, &b.frames), []string{"frame"}) })
}

// TestLaneThatNobodyReads is closed when too much waits.
func TestLaneThatNobodyReads(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	c := config(1, listen(t, "127.0.0.1:0"), map[uint64]string{2: l.Addr().String()})
	framing(&c)
	c.QueueBytes = 1 << 20
	done := make(chan struct{})
	go func() {
		defer close(done)
		answerAll(l)
	}()
	a := launch(t, c)
	defer func() { l.Close(); a.Transport.Close(); <-done }()
	a.CarryFrames(true)
	lane := a.lane(t, 0)
	batch := make([]byte, 64<<10)
	eventually(t, "the lane is closed", func() bool {
		lane.Send(batch)
		return len(get(a.recorder, &a.lanes)) > 1
	})
	if a.journal.count("the connection for frames to a peer is broken", "does not read its frames") == 0 {
		t.Error("the log does not say why")
	}
}

// answerAll answers each handshake as server 2 would, which reads the level of frames, and
// reads nothing more.
func answerAll(l net.Listener) {
	var open []net.Conn
	defer func() {
		for _, conn := range open {
			conn.Close()
		}
	}()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		open = append(open, conn)
		k := newConnection(conn, conn)
		opening, _, err := k.read()
		if err != nil {
			continue
		}
		h := visitHello()
		h.MaxLevel = 3
		_ = k.write(opening, h.Append(nil), nil, true)
	}
}

// TestFramesOnlyToThoseThatReadThem: an older release would close the connection.
func TestFramesOnlyToThoseThatReadThem(t *testing.T) {
	for _, old := range []uint64{1, 2} {
		t.Run(fmt.Sprintf("server %d is older", old), func(t *testing.T) {
			a, b := pair(t, func(c *Config) {
				if framing(c); c.Self.Server == old {
					c.MaxLevel, c.FrameLevel = 2, 0
				}
			})
			for _, s := range []*server{a, b} {
				s.CarryFrames(true)
				s.SendSeat(3-s.cfg.Self.Server, []byte("lost"))
				s.SendTold(3-s.cfg.Self.Server, []byte("lost"))
				s.SendClock(3-s.cfg.Self.Server, []byte("lost"))
			}
			a.Note([]byte("after"))
			b.Note([]byte("after"))
			eventually(t, "notes arrive", func() bool {
				return slices.Equal(get(a.recorder, &a.notes), []string{"2: after"}) && slices.Equal(get(b.recorder, &b.notes), []string{"1: after"})
			})
			if n := len(get(a.recorder, &a.lanes)) + len(get(b.recorder, &b.lanes)); n > 0 {
				t.Errorf("%d lanes", n)
			}
		})
	}
}

// TestLanesComeAndGo with the wish for them. What is said about seats needs none.
func TestLanesComeAndGo(t *testing.T) {
	a, b := pair(t, framing)
	a.SendSeat(2, []byte("enter"))
	b.SendTold(1, []byte("entered"))
	a.SendSeat(2, make([]byte, maxSeat+1))
	a.SendSeat(9, []byte("nobody"))
	a.SendClock(2, make([]byte, maxNote+1))
	a.SendClock(2, []byte("when"))
	eventually(t, "what is said about seats arrives", func() bool {
		return slices.Equal(get(b.recorder, &b.notes), []string{"1 seat: enter", "1 clock: when"}) && slices.Equal(get(a.recorder, &a.notes), []string{"2 told: entered"})
	})
	for came := 0; came < 6; came += 2 {
		b.CarryFrames(true)
		b.lane(t, came).Send([]byte("frame"))
		b.CarryFrames(false)
		eventually(t, "the lane is gone", func() bool { return len(get(b.recorder, &b.lanes)) == came+2 })
	}
	b.CarryFrames(true)
	b.lane(t, 6)
	if err := a.Transport.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the lane ends with the peer", func() bool { return len(get(b.recorder, &b.lanes)) == 8 })
	again := config(1, listen(t, a.address), map[uint64]string{2: b.address})
	framing(&again)
	launch(t, again)
	b.lane(t, 8)
	p := b.peer(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known.Inbound(peering.Frames) != nil {
		t.Error("server 1 never wanted a lane")
	}
}

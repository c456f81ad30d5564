package host

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/conclave-io/conclave/lab/engine"
)

// worker is an engine in a goroutine of its own.
type worker struct {
	engine *engine.Engine
	asked  chan *asked
	ending <-chan struct{}
	end    context.CancelFunc // ends the worker, whatever it does
	open   map[uint64]*asked  // by the worker's own numbers
	last   uint64
}

// asked is a request and where its frames go.
type asked struct {
	request *engine.Request
	id      uint64 // the page's
	own     uint64 // the worker's
	pieces  chan []byte
	gone    <-chan struct{} // nobody reads any more
}

func newWorker(o Options) *worker {
	ctx, end := context.WithCancel(context.Background())
	w := &worker{asked: make(chan *asked), ending: ctx.Done(), end: end, open: map[uint64]*asked{}}
	w.engine = engine.New(engine.Options{Context: ctx, Build: o.Build, Host: "native", Cores: o.Cores, Memory: o.Memory, Room: o.Room, Send: w.send})
	return w
}

// work answers requests until the worker is ended, or nobody asks for long.
func (w *worker) work() {
	idle := time.NewTimer(idleTime)
	defer idle.Stop()
	defer w.end()
	defer w.engine.Close()
	for busy := false; ; {
		if busy {
			select {
			case <-w.ending:
				return
			case a := <-w.asked:
				w.receive(a)
			default:
			}
			busy = w.engine.Work()
			w.leave()
			continue
		}
		idle.Reset(idleTime)
		select {
		case <-w.ending:
			return
		case <-idle.C:
			return
		case a := <-w.asked:
			w.receive(a)
			busy = w.engine.Work()
		}
	}
}

// receive gives a request to the engine, under a number that no other has. What it
// cancels is named by the page's number.
func (w *worker) receive(a *asked) {
	w.last++
	a.id, a.own = a.request.ID, w.last
	a.request.ID = a.own
	w.open[a.own] = a
	if named := a.request.Request; a.request.Call == engine.CallCancel && named != nil {
		own := uint64(0)
		for _, other := range w.open {
			if other.id == *named && other != a {
				own = max(own, other.own)
			}
		}
		a.request.Request = &own
	}
	w.engine.Receive(a.request)
}

// leave cancels the requests whose reader is gone.
func (w *worker) leave() {
	for own, a := range w.open {
		select {
		case <-a.gone:
			delete(w.open, own)
			w.engine.Receive(&engine.Request{Call: engine.CallCancel, Request: &own})
		default:
		}
	}
}

// send passes a frame on, and waits until somebody takes it.
func (w *worker) send(f engine.Frame) {
	a := w.open[f.ID]
	if a == nil {
		return
	}
	f.ID = a.id
	head, err := f.Header()
	if err != nil {
		head, f.Body = nil, nil
	}
	piece := binary.LittleEndian.AppendUint32(nil, uint32(len(head)))
	piece = binary.LittleEndian.AppendUint32(piece, uint32(len(f.Body)))
	piece = append(append(piece, head...), f.Body...)
	select {
	case a.pieces <- piece:
	case <-a.gone:
	case <-w.ending:
	}
	if f.Type == engine.TypeResult || f.Type == engine.TypeError {
		close(a.pieces)
		delete(w.open, a.own)
	}
}

// ask has a request answered and writes the pieces of the answer. It returns after the
// last one, or when the context, the worker or the writing ends.
func (w *worker) ask(ctx context.Context, r *engine.Request, write func(piece []byte) error) {
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	a := &asked{request: r, pieces: make(chan []byte, 4), gone: ctx.Done()}
	select {
	case w.asked <- a:
	case <-w.ending:
		return
	case <-ctx.Done():
		return
	}
	for {
		select {
		case piece, more := <-a.pieces:
			if !more || write(piece) != nil {
				return
			}
		case <-w.ending:
			return
		case <-ctx.Done():
			return
		}
	}
}

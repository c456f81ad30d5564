package nemesis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/kit/boottime"
)

const (
	ttl = 3 * time.Second
	// locks is the number of locks. workersPerProgram is the number of goroutines of each
	// program that contend for them. They share a session.
	locks             = 3
	workersPerProgram = 4
)

// job is the order that a program of workers gets.
type job struct {
	Servers []string
	Socket  string // of the observer
	Program int    // a different number for each program
	Seed    uint64
}

// Kinds of reports.
const (
	entered = "entered" // a lock was granted
	wrote   = "wrote"   // the resource is written to, under a fence
	left    = "left"    // the lock is about to be released, or was lost
	gone    = "gone"    // the release was answered
	failed  = "failed"  // an error that must not happen
)

// report is a message from a worker to the observer. Times are readings of CLOCK_BOOTTIME, in
// nanoseconds.
type report struct {
	Program  int
	Member   int // the number of the worker in its program
	Kind     string
	Lock     string
	Fence    uint64
	At       int64
	Deadline int64 // of the handle, read before At
	// Lost means that the lock is no longer held: the handle reported it, or the servers did in
	// their answer to the release.
	Lost    bool   `json:",omitempty"`
	Problem string `json:",omitempty"`
}

// answer is the observer's answer to a report.
type answer struct{ Refused bool }

// work is the main function of a program of workers. It runs until SIGTERM.
func work(text string) int {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	client, err := conclave.Dial(ctx, conclave.Config{Servers: j.Servers, TTL: ttl, Program: fmt.Sprint("program ", j.Program)})
	if err != nil {
		if ctx.Err() != nil {
			return 0 // SIGTERM came before the client was connected
		}
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer client.Close()
	var crewed sync.WaitGroup
	errs := make([]error, workersPerProgram)
	for i := range workersPerProgram {
		crewed.Go(func() { errs[i] = j.member(ctx, client, i) })
	}
	crewed.Wait()
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// member is one worker.
func (j job) member(ctx context.Context, client *conclave.Client, i int) error {
	conn, err := net.Dial("unix", j.Socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	w := &worker{
		client: client, job: j, number: i, random: rand.New(rand.NewPCG(j.Seed, uint64(j.Program*workersPerProgram+i))),
		out: json.NewEncoder(conn), in: json.NewDecoder(conn),
	}
	for ctx.Err() == nil {
		if err := w.turn(ctx); err != nil {
			return err
		}
	}
	return nil
}

type worker struct {
	client *conclave.Client
	job    job
	number int
	random *rand.Rand
	out    *json.Encoder
	in     *json.Decoder
}

// tell sends a report and waits for the answer. An error means that the observer is gone.
func (w *worker) tell(r report) (answer, error) {
	r.Program, r.Member = w.job.Program, w.number
	if err := w.out.Encode(r); err != nil {
		return answer{}, err
	}
	var a answer
	err := w.in.Decode(&a)
	return a, err
}

// turn asks for a lock, and enters if it is granted. Every eighth request has a deadline of at
// most 200 ms, so that some are withdrawn while they are being granted.
func (w *worker) turn(ctx context.Context) error {
	name := fmt.Sprint("lock-", w.random.IntN(locks))
	asking, cancel := ctx, context.CancelFunc(func() {})
	if w.random.IntN(8) == 0 {
		asking, cancel = context.WithTimeout(ctx, time.Duration(w.random.IntN(200))*time.Millisecond)
	}
	defer cancel()
	held, err := w.client.Lock(asking, name)
	switch {
	case err == nil:
		return w.stay(held)
	case asking.Err() != nil:
		return nil
	default:
		_, err = w.tell(report{Kind: failed, Lock: name, Problem: err.Error()})
		return err
	}
}

// stay holds the lock for a while. It reads the fence only once, before its writes. A worker that was
// stopped in between continues to write with it, and only the resource can refuse a late write.
func (w *worker) stay(held *conclave.Lock) error {
	deadline, at := held.Deadline(), boottime.Now()
	fence, err := held.Fence()
	if err != nil {
		return nil // lost before it began: nothing is done under it
	}
	inside := report{Kind: entered, Lock: held.Name(), Fence: fence, At: int64(at), Deadline: int64(deadline)}
	if _, err := w.tell(inside); err != nil {
		return err
	}
	if err := w.write(held, inside); err != nil {
		return err
	}
	<-time.After(w.duration())
	if err := w.write(held, inside); err != nil {
		return err
	}
	return w.leave(held, inside)
}

// duration returns how long to stay: a few milliseconds, and sometimes so long that the session is
// renewed during the stay.
func (w *worker) duration() time.Duration {
	if w.random.IntN(40) == 0 {
		return time.Duration(500+w.random.IntN(1000)) * time.Millisecond
	}
	return time.Duration(1+w.random.IntN(15)) * time.Millisecond
}

// write writes to the resource. The write must not be refused before the deadline: that would mean that
// a client with a larger fence had entered.
func (w *worker) write(held *conclave.Lock, r report) error {
	r.Kind = wrote
	a, err := w.tell(r)
	if err != nil || !a.Refused {
		return err
	}
	r.Kind, r.Lost = failed, held.Context().Err() != nil
	if r.At = int64(boottime.Now()); r.Lost {
		return nil // as it should be
	}
	r.Problem = "a write was refused before the deadline"
	_, err = w.tell(r)
	return err
}

// leave reports the end of the hold before it releases, so that the observer knows it before the
// servers do.
func (w *worker) leave(held *conclave.Lock, r report) error {
	r.Kind = left
	// Read the context first: once it reports the loss, the deadline no longer moves.
	r.Lost = errors.Is(context.Cause(held.Context()), conclave.ErrLost)
	r.Deadline, r.At = int64(held.Deadline()), int64(boottime.Now())
	if _, err := w.tell(r); err != nil {
		return err
	}
	err := held.Unlock(context.Background())
	r.Kind = gone
	r.Lost = errors.Is(err, conclave.ErrNotHeld)
	r.Deadline, r.At = int64(held.Deadline()), int64(boottime.Now())
	if err != nil && !r.Lost {
		r.Problem = err.Error()
	}
	_, err = w.tell(r)
	return err
}

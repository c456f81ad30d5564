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
	"github.com/conclave-io/conclave/internal/boottime"
)

const (
	ttl = 3 * time.Second
	// locks is how many there are to contend for, and crew how many goroutines of
	// each program do. All of a program share a session.
	locks = 3
	crew  = 4
)

// job is what a program of workers is told.
type job struct {
	Servers []string
	Socket  string // of the observer
	Program int    // no two have the same
	Seed    uint64
}

// Kinds of reports.
const (
	entered = "entered" // a lock was granted
	wrote   = "wrote"   // the resource is written to, under a fence
	left    = "left"    // the lock is about to be released, or was lost
	gone    = "gone"    // what the release was answered
	failed  = "failed"  // what should not happen
)

// report is what a worker tells the observer. Times are readings of
// CLOCK_BOOTTIME, in nanoseconds.
type report struct {
	Program  int
	Member   int // of the crew
	Kind     string
	Lock     string
	Fence    uint64
	At       int64
	Deadline int64 // of the handle, read before At
	// Lost says that the handle, or the servers when it was released, said that
	// the lock is held no more.
	Lost    bool   `json:",omitempty"`
	Problem string `json:",omitempty"`
}

// answer is what the observer says to a report.
type answer struct{ Refused bool }

// work is the whole life of a program of workers, until SIGTERM.
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
			return 0 // it was told to end before it had begun
		}
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer client.Close()
	var crewed sync.WaitGroup
	errs := make([]error, crew)
	for i := range crew {
		crewed.Go(func() { errs[i] = j.member(ctx, client, i) })
	}
	crewed.Wait()
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// member is one goroutine of the crew.
func (j job) member(ctx context.Context, client *conclave.Client, i int) error {
	conn, err := net.Dial("unix", j.Socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	w := &worker{
		client: client, job: j, number: i, random: rand.New(rand.NewPCG(j.Seed, uint64(j.Program*crew+i))),
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

// tell reports, and waits for the answer. An error means that nobody observes.
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

// stay is a stay inside. The writes to the resource ask for the fence at the
// beginning only: a worker that was stopped meanwhile writes in good faith when
// it goes on, and only the resource can keep it from doing harm.
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

// duration is how long to stay: a few milliseconds, and now and then so long
// that the session is renewed meanwhile.
func (w *worker) duration() time.Duration {
	if w.random.IntN(40) == 0 {
		return time.Duration(500+w.random.IntN(1000)) * time.Millisecond
	}
	return time.Duration(1+w.random.IntN(15)) * time.Millisecond
}

// write writes to the resource. It must not be refused before the deadline:
// that would mean that somebody with a larger fence was let in.
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

// leave reports first, so that the hold is over for the observer when the
// servers hear of it.
func (w *worker) leave(held *conclave.Lock, r report) error {
	r.Kind = left
	// The context first: if it says lost, the deadline moves no more.
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

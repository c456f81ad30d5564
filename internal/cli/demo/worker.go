package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/conclave-io/conclave"
)

// Lock is the name of the lock that the workers contend for.
const Lock = "demo"

// ttl is how long the others wait for a worker that was killed.
const ttl = 3 * time.Second

// stay is how long a worker stays inside.
const stay = time.Millisecond

// Worker acquires the lock again and again until ctx ends, and appends a line to the file when it
// enters and when it leaves. After the signal clingSignal it stays inside the next time, and
// reports that on standard output: then it can be killed while it holds the lock.
func Worker(ctx context.Context, servers []string, number int, path string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	client, err := conclave.Dial(ctx, conclave.Config{Servers: servers, TTL: ttl, Program: fmt.Sprint("worker ", number)})
	if err != nil {
		return err
	}
	defer client.Close()
	cling := make(chan os.Signal, 1)
	signal.Notify(cling, clingSignal)
	w := &worker{client: client, file: file, number: number, cling: cling}
	for ctx.Err() == nil {
		if err := w.turn(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

type worker struct {
	client *conclave.Client
	file   *os.File
	number int
	cling  chan os.Signal
}

// turn enters once.
func (w *worker) turn(ctx context.Context) error {
	began := monotonic()
	held, err := w.client.Lock(ctx, Lock)
	if err != nil {
		return err
	}
	at := monotonic()
	fence, err := held.Fence()
	if err != nil {
		return nil // lost before it entered, so nothing was done under the lock
	}
	w.write(record{fence, w.number, enter, at, at - began})
	select {
	case <-w.cling:
		fmt.Println("inside")
		<-ctx.Done() // until it is killed
	case <-time.After(stay):
	}
	// The time is read before checking whether the worker still holds the lock, so it held
	// the lock at that time.
	at = monotonic()
	event := leave
	if held.Context().Err() != nil {
		event = lost
	}
	w.write(record{fence, w.number, event, at, 0})
	if err := held.Unlock(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, conclave.ErrNotHeld) {
		return err
	}
	return nil
}

// write appends a line in one call, so that lines of different workers do not mix.
func (w *worker) write(r record) {
	if _, err := w.file.WriteString(r.String()); err != nil {
		fmt.Fprintln(os.Stderr, "conclave: worker", w.number, err)
		os.Exit(1)
	}
}

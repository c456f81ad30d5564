package conclave_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/embed"
)

// The holder of the lock does the work, and sends the fence to the store with each write.
func ExampleClient_Lock() {
	ctx := context.Background()
	client, err := conclave.Dial(ctx, conclave.Config{Servers: []string{"127.0.0.1:7400"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	lock, err := client.Lock(ctx, "reports/nightly")
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock(ctx)

	fence, err := lock.Fence()
	if err != nil {
		log.Fatal(err) // lost already
	}
	if err := write(lock.Context(), fence, "report"); err != nil {
		log.Print(err)
	}
}

// One of many candidates leads until it resigns, dies or loses its session. The others
// wait in a queue.
func ExampleClient_Campaign() {
	ctx := context.Background()
	client, err := conclave.Dial(ctx, conclave.Config{Servers: []string{"127.0.0.1:7400"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	leadership, err := client.Campaign(ctx, "scheduler", []byte("10.0.0.7:9000"))
	if err != nil {
		log.Fatal(err)
	}
	defer leadership.Resign(ctx)

	<-leadership.Context().Done()
	fmt.Println("no longer the leader:", context.Cause(leadership.Context()))
}

// Observers learn who leads, and how to reach it.
func ExampleClient_Observe() {
	ctx := context.Background()
	client, err := conclave.Dial(ctx, conclave.Config{Servers: []string{"127.0.0.1:7400"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	observations, err := client.Observe(ctx, "scheduler")
	if err != nil {
		log.Fatal(err)
	}
	for o := range observations {
		if o.Elected {
			fmt.Printf("%s leads since %v\n", o.Leader.Value, o.Leader.Since)
		}
	}
}

// TryLock does not wait. It says who holds the lock.
func ExampleClient_TryLock() {
	ctx := context.Background()
	client, err := embed.Open(ctx, embed.Config{Program: "reporter"}) // or conclave.Dial, of a cluster
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	lock, err := client.TryLock(ctx, "reports/nightly")
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock(ctx)

	_, err = client.TryLock(ctx, "reports/nightly")
	var held *conclave.HeldError
	if errors.As(err, &held) {
		fmt.Printf("%s is held by %s\n", held.Name, held.Holder.Program)
	}
	// Output: reports/nightly is held by reporter
}

// Readers hold a lock together, and keep writers out.
func ExampleShared() {
	ctx := context.Background()
	client, err := embed.Open(ctx, embed.Config{}) // or conclave.Dial, of a cluster
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	var readers []*conclave.Lock
	for range 2 {
		reader, err := client.Lock(ctx, "catalog", conclave.Shared())
		if err != nil {
			log.Fatal(err)
		}
		readers = append(readers, reader)
	}
	_, err = client.TryLock(ctx, "catalog")
	fmt.Println("with readers:", errors.Is(err, conclave.ErrHeld))

	for _, reader := range readers {
		if err := reader.Unlock(ctx); err != nil {
			log.Fatal(err)
		}
	}
	writer, err := client.TryLock(ctx, "catalog")
	fmt.Println("without readers:", err)
	defer writer.Unlock(ctx)
	// Output:
	// with readers: true
	// without readers: <nil>
}

// A lock with a limit is a semaphore: at most two hold this one at a time.
func ExampleLimit() {
	ctx := context.Background()
	client, err := embed.Open(ctx, embed.Config{}) // or conclave.Dial, of a cluster
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	for turn := 1; turn <= 3; turn++ {
		_, err := client.TryLock(ctx, "license", conclave.Limit(2))
		fmt.Println(turn, errors.Is(err, conclave.ErrHeld))
	}
	// Output:
	// 1 false
	// 2 false
	// 3 true
}

// Watch reports what is held now, and then each change.
func ExampleClient_Watch() {
	ctx := context.Background()
	client, err := embed.Open(ctx, embed.Config{}) // or conclave.Dial, of a cluster
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	lock, err := client.Lock(ctx, "reports/nightly")
	if err != nil {
		log.Fatal(err)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	changes, err := client.Watch(watching, "reports/")
	if err != nil {
		log.Fatal(err)
	}
	for c := range changes {
		for _, r := range c.Resources {
			fmt.Println(r.Name, "is held by", len(r.Holders))
			lock.Unlock(ctx)
		}
		for _, name := range c.Gone {
			fmt.Println(name, "is free")
			stop() // which closes the channel
		}
	}
	// Output:
	// reports/nightly is held by 1
	// reports/nightly is free
}

// Two locks that were acquired side by side are both kept while a third call waits. The context of
// one of them alone would say only that this one is.
func ExampleKeeping() {
	ctx := context.Background()
	client, err := embed.Open(ctx, embed.Config{}) // or conclave.Dial, of a cluster
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	from, err := client.Lock(ctx, "account/1")
	if err != nil {
		log.Fatal(err)
	}
	to, err := client.Lock(ctx, "account/2")
	if err != nil {
		log.Fatal(err)
	}
	keeping := conclave.Keeping(ctx, from.Kept(), to.Kept())
	journal, err := client.Lock(keeping, "journal")
	if err != nil {
		log.Fatal(err)
	}
	defer journal.Unlock(ctx)

	for _, kept := range conclave.Keeps(keeping) {
		fmt.Println(kept.Name)
	}
	// Output:
	// account/1
	// account/2
}

// A call that waits under the context of a lock keeps that lock. If the call would then wait forever, it
// fails. Release what is kept, so that the others can continue, and start again.
func ExampleDeadlockError() {
	ctx := context.Background()
	client, err := conclave.Dial(ctx, conclave.Config{Servers: []string{"127.0.0.1:7400"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	from, err := client.Lock(ctx, "account/1")
	if err != nil {
		log.Fatal(err)
	}
	defer from.Unlock(ctx)
	to, err := client.Lock(from.Context(), "account/2")
	var deadlock *conclave.DeadlockError
	switch {
	case errors.As(err, &deadlock):
		for _, d := range deadlock.Cycle {
			fmt.Printf("%s waits for %s, which %s holds\n", d.Waiter.Program, d.Name, d.Holder.Program)
		}
		return
	case err != nil:
		log.Fatal(err)
	}
	defer to.Unlock(ctx)
}

// A store remembers the largest floor that it has seen, and refuses smaller fences. So a writer that
// was paused, and does not know that it lost the lock, changes nothing.
func ExampleLock_Fence() {
	ctx := context.Background()
	client, err := embed.Open(ctx, embed.Config{}) // or conclave.Dial, of a cluster
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	var largest uint64
	store := func(writer string, fence, floor uint64) {
		if fence < largest {
			fmt.Println(writer, "is refused")
			return
		}
		largest = max(largest, floor)
		fmt.Println(writer, "writes")
	}
	fences := func(lock *conclave.Lock) (fence, floor uint64) {
		fence, err := lock.Fence()
		if err != nil {
			log.Fatal(err) // the lock is lost: write nothing
		}
		floor, err = lock.Floor()
		if err != nil {
			log.Fatal(err)
		}
		return fence, floor
	}

	first, err := client.Lock(ctx, "reports/nightly")
	if err != nil {
		log.Fatal(err)
	}
	fence1, floor1 := fences(first)
	store("the first", fence1, floor1)
	first.Unlock(ctx)

	second, err := client.Lock(ctx, "reports/nightly")
	if err != nil {
		log.Fatal(err)
	}
	fence2, floor2 := fences(second)
	store("the second", fence2, floor2)
	store("the first, late", fence1, floor1)
	// Output:
	// the first writes
	// the second writes
	// the first, late is refused
}

// Callers tell errors apart with errors.Is. An error with details has a type for errors.As.
func Example_errors() {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	_, err := conclave.Dial(ctx, conclave.Config{Servers: []string{"localhost"}})
	var wrong *conclave.ConfigError
	if errors.As(err, &wrong) {
		fmt.Println("the configuration is wrong:", wrong.Field, wrong.Reason)
	}

	_, err = conclave.Dial(ctx, conclave.Config{Servers: []string{"127.0.0.1:1"}})
	var unreachable *conclave.DialError
	if errors.Is(err, conclave.ErrUnavailable) && errors.As(err, &unreachable) {
		for _, a := range unreachable.Attempts {
			fmt.Println("no answer of", a.Server)
		}
	}

	client, err := embed.Open(context.Background(), embed.Config{})
	if err != nil {
		log.Fatal(err)
	}
	lock, err := client.Lock(context.Background(), "reports/nightly")
	if err != nil {
		log.Fatal(err)
	}
	client.Close()
	_, err = lock.Fence()
	fmt.Println("after Close:", errors.Is(err, conclave.ErrNotHeld), context.Cause(lock.Context()))
	_, err = client.Lock(context.Background(), "reports/nightly")
	fmt.Println("after Close:", errors.Is(err, conclave.ErrClosed))
	// Output:
	// the configuration is wrong: Servers "localhost": expected host:port
	// no answer of 127.0.0.1:1
	// after Close: true the hold was released
	// after Close: true
}

// A holder that is asked to leave learns why, and gives the lock up when it has stopped.
func ExampleRevokedError() {
	ctx := context.Background()
	client, err := embed.Open(ctx, embed.Config{}) // or conclave.Dial, of a cluster
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	lock, err := client.Lock(ctx, "reports/nightly")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := admin.New(client.Client).Revoke(ctx, "reports/nightly", "maintenance"); err != nil {
		log.Fatal(err)
	}
	<-lock.Context().Done()
	var revoked *conclave.RevokedError
	if errors.As(context.Cause(lock.Context()), &revoked) {
		fmt.Println("asked to leave:", revoked.Reason)
	}
	fmt.Println(lock.Unlock(ctx))
	// Output:
	// asked to leave: maintenance
	// <nil>
}

// write stands for a store that refuses a fence smaller than the largest it has
// seen.
func write(ctx context.Context, fence uint64, data string) error {
	return ctx.Err()
}

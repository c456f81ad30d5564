package conclave_test

import (
	"context"
	"fmt"
	"log"

	"github.com/conclave-io/conclave"
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

// write stands for a store that refuses a fence smaller than the largest it has
// seen.
func write(ctx context.Context, fence uint64, data string) error {
	return ctx.Err()
}

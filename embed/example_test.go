package embed_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/embed"
	"github.com/conclave-io/conclave/internal/service/server"
)

// A program that shares its locks with nobody else, in memory.
func ExampleOpen() {
	ctx := context.Background()
	client, err := embed.Open(ctx, embed.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	lock, err := client.Lock(ctx, "reports/nightly")
	if err != nil {
		log.Fatal(err)
	}
	fence, err := lock.Fence()
	fmt.Println(fence > 0, err)
	fmt.Println(lock.Unlock(ctx))
	// Output:
	// true <nil>
	// <nil>
}

// With a directory, fences continue growing from one start of the program to the
// next.
func ExampleOpen_onDisk() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "conclave-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	var fences []uint64
	for range 2 {
		client, err := embed.Open(ctx, embed.Config{Dir: dir})
		if err != nil {
			log.Fatal(err)
		}
		fences = append(fences, nextFence(ctx, client.Client))
		client.Close()
	}
	fmt.Println(fences[1] > fences[0])
	// Output: true
}

// nextFence is written for any client, of a server near or far.
func nextFence(ctx context.Context, client *conclave.Client) uint64 {
	lock, err := client.Lock(ctx, "reports/nightly")
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock(ctx)
	fence, err := lock.Fence()
	if err != nil {
		log.Fatal(err)
	}
	return fence
}

// One of three programs that are a cluster together.
func ExampleOpen_member() {
	client, err := embed.Open(context.Background(), embed.Config{
		Dir: "/var/lib/reporter",
		Member: &server.Config{
			ID:     1,
			Peers:  "1=10.0.0.1:7500,2=10.0.0.2:7500,3=10.0.0.3:7500",
			Listen: "10.0.0.1:7400",
			// Where the network is trusted; if not, the six files of
			// certificates.
			Insecure: true,
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
}

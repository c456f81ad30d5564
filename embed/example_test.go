package embed_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/embed"
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
		Member: &embed.Member{
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

// The embedded server has what a program needs for its own health checks, and package admin what
// operators do.
func ExampleClient_Instance() {
	ctx := context.Background()
	client, err := embed.Open(ctx, embed.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if err := client.Ready(ctx); err != nil {
		log.Fatal(err)
	}

	server := client.Instance()
	fmt.Println("server", server.ID(), "is led by", server.Leader(), server.Alive(ctx))
	members, err := admin.New(client.Client).Members(ctx)
	fmt.Println(len(members), "member", err)
	// Output:
	// server 1 is led by 1 <nil>
	// 1 member <nil>
}

// A part of the program with a session of its own: what it holds ends with that session, and not with
// that of the rest of the program. Both clients use the server in this process.
func ExampleServer_ClientConfig() {
	ctx := context.Background()
	client, err := embed.Open(ctx, embed.Config{Program: "reporter"})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	cfg := client.Instance().ClientConfig()
	cfg.Program = "reporter/uploads"
	uploads, err := conclave.Dial(ctx, cfg)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := uploads.Lock(ctx, "reports/upload"); err != nil {
		log.Fatal(err)
	}
	held, err := client.List(ctx, "reports/")
	fmt.Println(held[0].Name, "is held by", held[0].Holders[0].Program, err)

	fmt.Println(uploads.Close())
	held, err = client.List(ctx, "reports/")
	fmt.Println(len(held), "locks", err)
	// Output:
	// reports/upload is held by reporter/uploads <nil>
	// <nil>
	// 0 locks <nil>
}

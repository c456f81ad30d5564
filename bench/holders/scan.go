package holders

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc"

	"github.com/conclave-io/conclave/service/api"
)

// page is the number of locks in one read.
const page = 1000

// Scan reads all locks whose names start with a prefix, page by page. It stops when see returns an
// error.
func Scan(ctx context.Context, conn *grpc.ClientConn, prefix string, see func([]*api.Resource) error) error {
	client := api.NewConclaveClient(conn)
	for request := (&api.ListRequest{Prefix: prefix, Limit: page}); ; {
		answer, err := client.List(ctx, request)
		if err != nil {
			return err
		}
		all := answer.GetResources()
		if err := see(all); err != nil {
			return err
		}
		if !answer.GetMore() || len(all) == 0 {
			return nil
		}
		request.After = all[len(all)-1].GetName()
	}
}

// Backup reads a backup and returns its size in bytes.
func Backup(ctx context.Context, conn *grpc.ClientConn) (size int, err error) {
	stream, err := api.NewConclaveClient(conn).Backup(ctx, &api.BackupRequest{})
	if err != nil {
		return 0, err
	}
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return size, err
		}
		size += len(chunk.GetData())
	}
}

// Verify fails unless every session holds each of its locks, alone and with the fence of the grant.
func (c *Group) Verify(ctx context.Context) error {
	leader, err := c.Leader(ctx)
	if err != nil {
		return err
	}
	conn, err := Connect(leader)
	if err != nil {
		return err
	}
	defer conn.Close()
	seen := 0
	err = Scan(ctx, conn, "held-", func(all []*api.Resource) error {
		for _, res := range all {
			if err := c.verify(seen, res); err != nil {
				return err
			}
			seen++
		}
		return nil
	})
	if want := len(c.Sessions) * c.Each; err == nil && seen < want {
		err = fmt.Errorf("lock %q is not held, nor is any after it", c.Name(seen/c.Each, seen%c.Each))
	}
	return err
}

// verify checks the lock with the i-th name.
func (c *Group) verify(i int, res *api.Resource) error {
	if i/c.Each >= len(c.Sessions) {
		return fmt.Errorf("lock %q is held: no session acquired it", res.GetName())
	}
	s, lock := c.Sessions[i/c.Each], i%c.Each
	want := fmt.Sprintf("%s: %s %d", c.Name(i/c.Each, lock), s.Public, s.Fences[lock])
	var holders []string
	for _, h := range res.GetHolders() {
		holders = append(holders, fmt.Sprintf("%s %d", hex.EncodeToString(h.GetSession()), h.GetFence()))
	}
	if got := res.GetName() + ": " + strings.Join(holders, ", "); got != want {
		return fmt.Errorf("the lock is held as %q: expected %q", got, want)
	}
	return nil
}

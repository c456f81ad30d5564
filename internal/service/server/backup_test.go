package server_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/backup"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

func backupOf(t *testing.T, client api.ConclaveClient, stale bool) (*backup.Backup, error) {
	t.Helper()
	stream, err := client.Backup(within(t), &api.BackupRequest{Stale: stale})
	if err != nil {
		t.Fatal(err)
	}
	var file []byte
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		file = append(file, chunk.GetData()...)
	}
	b, err := backup.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	return b, nil
}

// Whatever server is asked, a backup has all that was acknowledged before.
func TestBackupHasWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	session := newSession()
	once(t, dial(t, c.Address(1), nil), session, open(time.Minute), api.Code_CODE_OK)
	for i, name := range []string{"a", "b", "c"} {
		reply := once(t, dial(t, c.Address(c.Leader()), nil), session, acquire(name), api.Code_CODE_OK)
		b, err := backupOf(t, dial(t, c.Address(i+1), nil), false)
		if err != nil {
			t.Fatal(err)
		}
		if counts := b.Registry.Counts(); counts.Fence != reply.GetFence() || counts.Locks != i+1 || counts.Sessions != 1 {
			t.Errorf("server %d: after the grant of %d the backup has %+v", i+1, reply.GetFence(), counts)
		}
		if b.Server != uint64(c.Leader()) || b.Name != t.Name() || b.Version != "test" || b.Stale || b.LongestTTL() != time.Minute {
			t.Errorf("server %d: the backup says %+v", i+1, b.Header)
		}
	}
}

func TestStaleBackupNeedsNoQuorum(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, 3)
	session := newSession()
	once(t, dial(t, c.Address(1), nil), session, open(time.Minute), api.Code_CODE_OK)
	left := c.Follower()
	for id := 1; id <= 3; id++ {
		if id != left {
			c.Stop(id)
		}
	}
	client := dial(t, c.Address(left), nil)
	if b, err := backupOf(t, client, true); err != nil || !b.Stale || b.Server != uint64(left) {
		t.Errorf("got %+v, %v", b, err)
	}
	if _, err := backupOf(t, client, false); status.Code(err) != codes.Unavailable {
		t.Errorf("without a quorum: %v", err)
	}
}

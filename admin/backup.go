package admin

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client"
)

// BackupOption changes what Backup does.
type BackupOption struct{ set func(*api.BackupRequest) }

// Stale takes what any server has that can be reached. It may lag behind the
// cluster, but needs no leader: it is what can still be had when most servers are
// lost.
func Stale() BackupOption {
	return BackupOption{func(r *api.BackupRequest) { r.Stale = true }}
}

// Backup writes the state of the cluster to w, as the file that the command
// `conclave snapshot restore` makes a new cluster of. It has all that was
// acknowledged before the call. Nothing is written unless all has arrived. Without
// a deadline in ctx Backup tries for 10 seconds.
func (a *Admin) Backup(ctx context.Context, w io.Writer, options ...BackupOption) error {
	ctx, cancel := client.Bounded(ctx)
	defer cancel()
	req := new(api.BackupRequest)
	for _, o := range options {
		o.set(req)
	}
	var file bytes.Buffer
	// The file may take longer than other answers: it has the time of the call.
	err := a.ask(ctx, "backup", func(_ context.Context, server api.ConclaveClient) error {
		file.Reset()
		stream, err := server.Backup(ctx, req)
		for err == nil {
			var chunk *api.BackupChunk
			if chunk, err = stream.Recv(); err == nil {
				file.Write(chunk.GetData())
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	_, err = w.Write(file.Bytes())
	return err
}

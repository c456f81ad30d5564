package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/conclave-io/conclave"
)

// Raise waits until the servers have met, and brings the cluster to the level that is
// needed or the highest that all read, if that is above. It rises by itself only if no
// program uses the cluster before.
func (c *Cluster) Raise(ctx context.Context, client *conclave.Client, needed uint32) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		u, err := client.Upgrade(ctx)
		switch {
		case err != nil || len(u.Obstacles) > 0:
		case u.Target > u.Level:
			_, err = client.RaiseLevel(ctx, u.Target)
		case u.Level >= needed:
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the level of the cluster is %d after 10 s: %w", u.Level, errors.Join(err, c.Died()))
		}
	}
}

package guarded

import (
	"context"
	"sync"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// fromMember is the answer of one member.
type fromMember[T any] struct {
	server uint64
	answer T
	err    error
}

// atMembers asks all members of the view that this server knows, at the same time: itself
// by calling here, the others by calling there.
func atMembers[T any](ctx context.Context, d *Door, here func(context.Context) (T, error), there func(context.Context, api.ConclaveClient) (T, error)) []fromMember[T] {
	return atEachMember(ctx, d, here, func(ctx context.Context, _ uint64, member api.ConclaveClient) (T, error) { return there(ctx, member) })
}

// atEachMember is atMembers for calls that depend on the member.
func atEachMember[T any](ctx context.Context, d *Door, here func(context.Context) (T, error), there func(context.Context, uint64, api.ConclaveClient) (T, error)) []fromMember[T] {
	ctx, cancel := forward.WithDeadline(ctx)
	defer cancel()
	var all []fromMember[T]
	err := d.cfg.Node.View(ctx, func(r *replica.Replica) {
		for _, m := range r.Registry().Guarded().Members {
			all = append(all, fromMember[T]{server: m.Server})
		}
	})
	if err != nil {
		return nil
	}
	var asking sync.WaitGroup
	for i := range all {
		asking.Go(func() {
			m := &all[i]
			if m.server == d.cfg.Server {
				m.answer, m.err = here(ctx)
				return
			}
			vouched, client, err := d.cfg.Forward.Reach(ctx, m.server)
			if err != nil {
				m.err = err
				return
			}
			m.answer, m.err = there(vouched, m.server, client)
		})
	}
	asking.Wait()
	return all
}

// itself returns the context in which this server asks the homes on its own behalf.
func (d *Door) itself(ctx context.Context) context.Context {
	return authn.WithCaller(ctx, authn.Local(d.cfg.Server))
}

// asked returns an error if no home was asked because this server is stopping.
func (d *Door) asked(ctx context.Context, homes int) error {
	if homes > 0 {
		return nil
	}
	return d.cfg.Forward.Status(ctx, d.cfg.Node.View(ctx, func(*replica.Replica) {}))
}

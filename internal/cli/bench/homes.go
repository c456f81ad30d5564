package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
)

// Homes are the clients with which locks under algorithms are measured: one at home at each
// server, and one that sets guards.
type Homes struct {
	Control *conclave.Client
	Clients []*conclave.Client // by server
	Servers int                // of the cluster
}

// DialHomes connects the clients to the servers at the addresses.
func DialHomes(ctx context.Context, cfg conclave.Config, addresses []string) (*Homes, error) {
	h := &Homes{Servers: len(addresses)}
	var err error
	if h.Control, err = conclave.Dial(ctx, cfg); err != nil {
		return nil, err
	}
	for _, address := range addresses {
		cfg.Home = address
		client, err := conclave.Dial(ctx, cfg)
		if err != nil {
			h.Close()
			return nil, err
		}
		h.Clients = append(h.Clients, client)
	}
	return h, nil
}

// Close closes all clients.
func (h *Homes) Close() {
	for _, c := range append(h.Clients, h.Control) {
		c.Close()
	}
}

// Guard sets what guards a prefix, or removes the guard if use has no algorithm. It waits until
// that holds at all servers, in one epoch.
func (h *Homes) Guard(ctx context.Context, prefix string, use admin.Use) (err error) {
	operator := admin.New(h.Control)
	if use.Algorithm == "" {
		err = operator.RemoveGuard(ctx, prefix)
	} else {
		err = operator.SetGuard(ctx, prefix, use)
	}
	if err != nil {
		return err
	}
	return Until(ctx, "the guard has changed", func() (bool, error) {
		v, err := operator.Homes(ctx)
		at := slices.IndexFunc(v.Guards, func(g admin.Guard) bool { return g.Prefix == prefix })
		if err != nil || use.Algorithm == "" || at < 0 {
			return at < 0, err
		}
		open := v.Guards[at].Change == nil && len(v.Members) == h.Servers
		for _, m := range v.Members {
			open = open && m.Home != nil && m.Home.State == "OPEN" && m.Home.Epoch == v.Epoch
		}
		return open, nil
	})
}

// Until waits until something holds. A server that is asked may have no leader for a moment, so
// an error does not end the wait.
func Until(ctx context.Context, what string, holds func() (bool, error)) error {
	for {
		ok, err := holds()
		if ok && err == nil {
			return nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("it took too long until %s: %w", what, errors.Join(err, ctx.Err()))
		}
	}
}

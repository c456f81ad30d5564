package client

import (
	"context"

	"github.com/conclave-io/conclave/api"
)

// MaxKeeps is how many holds a call keeps at most. If there are more, the last ones count.
const MaxKeeps = 64

// Kept names a hold that a caller keeps while it waits for another.
type Kept struct {
	Cluster  string // the identity of the cluster
	Election bool   // Name is that of an election, not of a lock
	Name     string
	Fence    uint64
}

type keepsKey struct{}

// keep is what a context says of one hold.
type keep struct {
	Kept
	under *holdContext // of the hold, if it is of this process
}

// Keeping returns a context that says what its caller keeps: these holds and no others.
func Keeping(ctx context.Context, holds []Kept) context.Context {
	keeps := make([]keep, len(holds))
	for i, k := range holds {
		keeps[i].Kept = k
	}
	return context.WithValue(ctx, keepsKey{}, keeps)
}

// Keeps returns what a context says that its caller keeps, the innermost hold last.
func Keeps(ctx context.Context) (holds []Kept) {
	for _, k := range keepsOf(ctx) {
		holds = append(holds, k.Kept)
	}
	return holds
}

// keepsOf leaves out what has ended, as far as this process knows.
func keepsOf(ctx context.Context) (keeps []keep) {
	all, _ := ctx.Value(keepsKey{}).([]keep)
	for _, k := range all {
		if k.under == nil || k.under.Err() == nil {
			keeps = append(keeps, k)
		}
	}
	return keeps[max(0, len(keeps)-MaxKeeps):]
}

// messageOf returns those holds that are in the cluster of this connection.
func (c *Conn) messageOf(keeps []keep) (message []*api.Kept) {
	for _, k := range keeps {
		if k.Cluster == c.identity {
			message = append(message, &api.Kept{Class: classOf(k.Election), Name: k.Name, Fence: k.Fence})
		}
	}
	return message
}

func classOf(election bool) api.Class {
	if election {
		return api.Class_CLASS_ELECTION
	}
	return api.Class_CLASS_LOCK
}

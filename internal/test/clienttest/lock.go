package clienttest

import (
	"context"
	"testing"

	"github.com/conclave-io/conclave"
)

// Lock takes a lock.
func Lock(t *testing.T, c *conclave.Client, name string) *conclave.Lock {
	t.Helper()
	l, err := c.Lock(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Outcome is how a call of Lock has ended.
type Outcome struct {
	Lock *conclave.Lock
	Err  error
}

// InBackground starts a Lock and returns where its outcome comes.
func InBackground(ctx context.Context, c *conclave.Client, name string) <-chan Outcome {
	out := make(chan Outcome, 1)
	go func() {
		l, err := c.Lock(ctx, name)
		out <- Outcome{l, err}
	}()
	return out
}

// Secret returns the secret of the session to which a lock was granted.
func (c *Cluster) Secret(l *conclave.Lock) (secret string) {
	c.Inspect(func(st *State) { secret = st.Secret(l.Kept().Fence) })
	return secret
}

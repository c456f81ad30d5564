package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/conclave-io/conclave/service/host"
)

// cutTries is how many epochs a cut is tried in.
const cutTries = 5

// ErrCutAborted is returned by Cut when another epoch began during each try.
var ErrCutAborted = fmt.Errorf("the members of the view changed %d times before a cut was complete; try again", cutTries)

// Cut returns a consistent cut of the machines of names under a prefix, and of the
// messages between them. It is tried again when another epoch begins meanwhile, a few
// times. While a member does not answer it waits, until the seat of that member is over
// or ctx is done. A server that takes no part returns ErrNotMember, and one that has
// more than a cut may have a *host.CutSizeError.
func (n *Node) Cut(ctx context.Context, prefix string) (*host.Cut, error) {
	l := n.live
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for range cutTries {
		cut, err := l.cut(ctx, prefix)
		if !errors.Is(err, host.ErrEpochOver) {
			return cut, err
		}
	}
	return nil, ErrCutAborted
}

// cut is one try.
func (l *live) cut(ctx context.Context, prefix string) (*host.Cut, error) {
	ended := make(chan host.CutEnd, 1)
	var number uint64
	err := ErrStopped
	l.with(func(h *host.Host, now int64) {
		if number, err = h.Cut(now, prefix); err == nil {
			l.cuts[number] = ended
		}
	})
	if errors.Is(err, ErrStopped) {
		return nil, err
	}
	if err != nil {
		return nil, ErrNotMember
	}
	select {
	case end := <-ended:
		return end.Cut, end.Err
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.cuts, number)
		return nil, ctx.Err()
	}
}

// endCuts tells those who asked for cuts what became of them; mu is held.
func (l *live) endCuts(ends []host.CutEnd) {
	for _, end := range ends {
		if ended := l.cuts[end.Number]; ended != nil {
			delete(l.cuts, end.Number)
			ended <- end
		}
	}
}

// failCuts tells those who asked for cuts that there will be none; mu is held.
func (l *live) failCuts(err error) {
	for number, ended := range l.cuts {
		delete(l.cuts, number)
		ended <- host.CutEnd{Err: err}
	}
}

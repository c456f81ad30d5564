package home

import (
	"context"
	"errors"
	"fmt"

	"github.com/conclave-io/conclave/internal/service/host"
)

// cutTries is the number of epochs in which a cut is tried.
const cutTries = 5

// ErrCutAborted is returned by Cut when another epoch began during each try.
var ErrCutAborted = fmt.Errorf("the members of the view changed %d times before a cut was complete; try again", cutTries)

// Cut returns a consistent cut of the machines for the names under a prefix and of the
// messages between them. If another epoch begins meanwhile, it tries again, a few times.
// If a member does not answer, it waits until the seat of that member ends or ctx is done.
// It fails with ErrNotMember if this server takes no part in the view, and with a
// *host.CutSizeError if the cut is too large.
func (l *Home) Cut(ctx context.Context, prefix string) (*host.Cut, error) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for range cutTries {
		cut, ended, err := l.cut(ctx, prefix)
		switch {
		case ended != nil: // nobody waits for it any more, but it is under way until then
			go func() { <-ended; <-l.turn }()
			return nil, err
		case !errors.Is(err, host.ErrEpochOver):
			<-l.turn
			return cut, err
		}
	}
	<-l.turn
	return nil, ErrCutAborted
}

// cut is one attempt. If ctx is done first, it returns a channel that reports the end of the attempt.
func (l *Home) cut(ctx context.Context, prefix string) (*host.Cut, <-chan host.CutEnd, error) {
	ended := make(chan host.CutEnd, 1)
	var number uint64
	err := ErrStopped
	l.with(func(h *host.Host, now int64) {
		if number, err = h.Cut(now, prefix); err == nil {
			l.cuts[number] = ended
		}
	})
	if errors.Is(err, ErrStopped) {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, ErrNotMember
	}
	select {
	case end := <-ended:
		return end.Cut, nil, end.Err
	case <-ctx.Done():
		return nil, ended, ctx.Err()
	}
}

// endCuts reports the results of cuts to their callers. The caller holds mu.
func (l *Home) endCuts(ends []host.CutEnd) {
	for _, end := range ends {
		if ended := l.cuts[end.Number]; ended != nil {
			delete(l.cuts, end.Number)
			ended <- end
		}
	}
}

// failCuts tells all callers that their cuts have failed. The caller of failCuts holds mu.
func (l *Home) failCuts(err error) {
	for number, ended := range l.cuts {
		delete(l.cuts, number)
		ended <- host.CutEnd{Err: err}
	}
}

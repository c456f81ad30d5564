package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/conclave-io/conclave"
)

// lookEvery is how often a watch asks for what no stream reports: locks that algorithms guard, and
// epochs.
const lookEvery = time.Second

// look is an answer of the servers that guard locks by algorithms.
type look struct {
	locks  []conclave.Resource // that algorithms guard
	silent []uint64            // servers that did not answer
	starts []conclave.ViewStart
}

// looks asks every lookEvery until ctx ends. It skips a time at which no server answers.
func looks(ctx context.Context, client *conclave.Client, prefix string) <-chan look {
	out := make(chan look)
	go func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			if l, ok := lookOnce(ctx, client, prefix); ok {
				select {
				case out <- l:
				case <-ctx.Done():
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func lookOnce(ctx context.Context, client *conclave.Client, prefix string) (l look, ok bool) {
	v, err := client.Homes(ctx)
	if err != nil {
		return look{}, false
	}
	l.starts = startsOf(&v)
	if len(v.Guards) > 0 {
		if l.locks, l.silent, err = client.ListKnown(ctx, prefix); err != nil {
			return look{}, false
		}
	}
	l.locks = slices.DeleteFunc(l.locks, func(r conclave.Resource) bool { return r.Guard == "" })
	return l, true
}

type startView struct {
	At    time.Time `json:"at"`
	Epoch uint64    `json:"epoch"`
	Why   string    `json:"why"`
}

// liveNews filters what is new from one look to the next. Epochs before the first look are not new.
type liveNews struct {
	locks *news
	begun bool
	epoch uint64
	said  string // about servers that do not answer
}

// take returns the locks that changed. While a server does not answer, nothing is known to be free.
func (n *liveNews) take(l look) []conclave.Resource {
	return n.locks.take(conclave.Changes{
		Resources: slices.DeleteFunc(l.locks, func(r conclave.Resource) bool { return len(l.silent) > 0 && len(r.Holders) == 0 }),
		Reset:     len(l.silent) == 0,
	})
}

// starts returns those that were not returned before.
func (n *liveNews) starts(l look) (fresh []conclave.ViewStart) {
	for _, s := range l.starts {
		if s.Epoch > n.epoch {
			n.epoch = s.Epoch
			fresh = append(fresh, s)
		}
	}
	if !n.begun {
		n.begun, fresh = true, nil
	}
	return fresh
}

// printStarts prints a line for each epoch.
func (a *app) printStarts(starts []conclave.ViewStart) error {
	for _, s := range starts {
		if err := a.line(startView{s.At, s.Epoch, s.Why}, fmt.Sprintf("%s  epoch %d begins: %s", s.At.Local().Format(time.TimeOnly), s.Epoch, shown(s.Why))); err != nil {
			return err
		}
	}
	return nil
}

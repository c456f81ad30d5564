package main

import (
	"context"
	"fmt"
	"time"

	"github.com/conclave-io/conclave"
)

// namesReport is the memory that servers use for names that are no longer held.
type namesReport struct {
	Algorithm string  `json:"algorithm"`
	Names     int     `json:"names"`
	Before    int64   `json:"before_bytes"` // resident memory of all servers
	After     int64   `json:"after_bytes"`
	Each      float64 `json:"mb_a_member"`
}

// idleNames measures the memory for names that were held once. The names use two
// prefixes, because one prefix cannot have that many names.
func idleNames(ctx context.Context, b *bench) (section, error) {
	l, err := b.startLive(ctx)
	if err != nil {
		return section{}, err
	}
	defer l.close()
	r := namesReport{Algorithm: "suzuki-kasami"}
	prefixes := []string{"idle1/", "idle2/"}
	for _, prefix := range prefixes {
		if err := l.guard(ctx, prefix, r.Algorithm); err != nil {
			return section{}, err
		}
	}
	rest := time.Duration(l.rest) * time.Second
	if err := pause(ctx, rest); err != nil {
		return section{}, err
	}
	if r.Before, err = residentBytes(l.cluster.PIDs()); err != nil {
		return section{}, err
	}
	for _, prefix := range prefixes {
		held, err := l.hold(ctx, prefix, 0, l.locks/len(prefixes))
		if err != nil {
			return section{}, err
		}
		if err := l.eachHeld(held, func(h *conclave.Lock) error { return h.Unlock(ctx) }); err != nil {
			return section{}, err
		}
		r.Names += len(held)
	}
	if err := pause(ctx, rest); err != nil {
		return section{}, err
	}
	if r.After, err = residentBytes(l.cluster.PIDs()); err != nil {
		return section{}, err
	}
	r.Each = float64(r.After-r.Before) / 1e6 / float64(len(l.cluster.Addresses))
	return section{fmt.Sprintf("%d names under %s that were used once take %s MB of RAM at each server (wanted: at most 50 for 100,000).\n", r.Names, r.Algorithm, digits(r.Each)), r}, nil
}

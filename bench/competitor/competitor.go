// Package competitor runs Conclave and other lock services as processes on this machine, with data
// on its disk. It uses the usual client of each service, and its usual recipe for a lock.
//
// All services run with their defaults. The package only sets their addresses and data directories,
// and how Redis syncs, because the default of Redis is not comparable. It needs Linux.
package competitor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/conclave-io/conclave/internal/cli/bench"
)

// Service is a running service.
type Service interface {
	// Lockers returns one locking function per client, and a function that closes their
	// connections. The clients share the given number of connections. If ctx is cancelled, they are
	// closed early.
	Lockers(ctx context.Context, workload string, clients, connections int) ([]bench.Locker, func(), error)
	// Leader returns the leading server. It returns an error unless all servers follow that leader.
	// So it also shows when the service has recovered.
	Leader(ctx context.Context) (int, error)

	PIDs() []int
	Signal(id int, signal os.Signal) error
	Reap(id int)
	Restart(id int) error
	Died() error
	Stop() error
}

// TTL is the time after which the lock of a crashed holder is free, in every service.
const TTL = 10 * time.Second

// ErrAbsent means that a service is not installed.
var ErrAbsent = errors.New("not installed")

// Kinds lists the supported services.
var Kinds = []string{"conclave", "etcd", "zookeeper", "redis-always", "redis-everysec"}

// Binaries are the programs that were built from source.
type Binaries struct {
	Conclave, Etcd string
}

// Start starts a service with its data in a new directory below dir, and waits until it is ready.
func Start(ctx context.Context, kind string, binaries Binaries, dir string) (Service, error) {
	dir, err := os.MkdirTemp(dir, kind+"-")
	if err != nil {
		return nil, err
	}
	start, known := map[string]func(Binaries, string) (Service, error){
		"conclave":       func(b Binaries, dir string) (Service, error) { return StartConclave(b.Conclave, dir) },
		"etcd":           startEtcd,
		"zookeeper":      startZooKeeper,
		"redis-always":   startRedis("always"),
		"redis-everysec": startRedis("everysec"),
	}[kind]
	if !known {
		return nil, fmt.Errorf("unknown service %q: there are %v", kind, Kinds)
	}
	s, err := start(binaries, dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	if _, err := Settle(ctx, s); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", kind, err), s.Stop())
	}
	return s, nil
}

// settling is the maximum time until all servers of a service follow one leader.
const settling = time.Minute

// Settle waits until all servers of a service follow one leader, and returns it.
func Settle(ctx context.Context, s Service) (leader int, err error) {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	for {
		leader, err := s.Leader(ctx)
		if err == nil {
			return leader, nil
		}
		if died := s.Died(); died != nil {
			return 0, died
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return 0, fmt.Errorf("not settled within %v: %w", settling, err)
		}
	}
}

// slack is the number of log entries that a follower may be behind. Some entries are always in
// transit.
const slack = 100

// closers returns a function that closes everything once, in reverse order. Cancelling ctx has the
// same effect.
func closers(ctx context.Context, closing []func()) func() {
	all := func() {
		for i := len(closing) - 1; i >= 0; i-- {
			closing[i]()
		}
	}
	early := context.AfterFunc(ctx, all)
	return func() {
		if early() {
			all()
		}
	}
}

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
	"syscall"
	"time"

	"github.com/conclave-io/conclave/internal/bench"
)

// Service is a service that runs.
type Service interface {
	// Lockers returns functions that lock, one for each client, over as many
	// connections as asked for, and what closes them. They are closed early if
	// ctx ends.
	Lockers(ctx context.Context, workload string, clients, connections int) ([]bench.Locker, func(), error)
	// Leader returns the server that leads, and an error if all cannot be seen
	// to follow it: so it also says that the service has recovered.
	Leader(ctx context.Context) (int, error)

	Servers() int
	PIDs() []int
	Signal(id int, signal syscall.Signal) error
	Reap(id int)
	Restart(id int) error
	Died() error
	Stop() error
}

// TTL is how long a lock outlives its holder, in every service.
const TTL = 10 * time.Second

// errAbsent says that a service is not installed here.
var errAbsent = errors.New("not installed")

// Absent reports whether an error of Start only says that the service is not
// installed.
func Absent(err error) bool { return errors.Is(err, errAbsent) }

// Kinds are the services that there are.
var Kinds = []string{"conclave", "etcd", "zookeeper", "redis-always", "redis-everysec"}

// Binaries are the programs that are built rather than installed.
type Binaries struct {
	Conclave, Etcd string
}

// Start starts a service with its data in a new directory of dir and waits until it serves.
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

// settling is how long a service may take until all its servers follow one.
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

// slack is how many entries of the log a server may lack and still count as one
// that follows: there are always some on their way.
const slack = 100

// closers closes in the order opposite to that of opening, once, and as soon as
// ctx ends.
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

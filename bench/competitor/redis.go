package competitor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"time"

	"github.com/redis/rueidis"

	"github.com/conclave-io/conclave/internal/cli/bench"
)

type redis struct {
	*group
	address string
}

// startRedis starts one server, because a lock in Redis is stored on a single server.
func startRedis(sync string) func(Binaries, string) (Service, error) {
	return func(_ Binaries, dir string) (Service, error) {
		binary, err := exec.LookPath("redis-server")
		if err != nil {
			return nil, fmt.Errorf("%w: there is no redis-server in PATH (apt-get install redis-server)", ErrAbsent)
		}
		free, err := freeAddresses(1)
		if err != nil {
			return nil, err
		}
		r := &redis{address: free[0]}
		r.group, err = startGroup(dir, []string{
			binary, "--bind", "127.0.0.1", "--port", port(r.address), "--dir", dir,
			"--save", "", "--appendonly", "yes", "--appendfsync", sync,
		})
		return r, err
	}
}

func (r *redis) dial() (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{r.address}, DisableCache: true, ForceSingleClient: true,
		PipelineMultiplex: -1, // one connection for the pipelined commands of all goroutines
	})
}

// releaseScript deletes the lock only if this client still holds it.
var releaseScript = rueidis.NewLuaScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)

// Lockers uses SET with NX and PX, and a script for the release. Redis has no queue. A client that
// finds the lock taken retries after a pause of 1 to 3 ms.
func (r *redis) Lockers(ctx context.Context, _ string, clients, connections int) ([]bench.Locker, func(), error) {
	var conns []rueidis.Client
	var closing []func()
	for range connections {
		conn, err := r.dial()
		if err != nil {
			closers(ctx, closing)()
			return nil, nil, err
		}
		closing = append(closing, conn.Close)
		conns = append(conns, conn)
	}
	var lockers []bench.Locker
	for i := range clients {
		lockers = append(lockers, redisLocker(conns[i%connections]))
	}
	return lockers, closers(ctx, closing), nil
}

func redisLocker(conn rueidis.Client) bench.Locker {
	return func(ctx context.Context, name string) (bench.Release, error) {
		token := fmt.Sprintf("%016x", rand.Uint64())
		for {
			err := conn.Do(ctx, conn.B().Set().Key(name).Value(token).Nx().Px(TTL).Build()).Error()
			switch {
			case err == nil:
				return redisRelease(conn, name, token), nil
			case !rueidis.IsRedisNil(err):
				return nil, err
			}
			select {
			case <-time.After(time.Millisecond + rand.N(2*time.Millisecond)):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
}

func redisRelease(conn rueidis.Client, name, token string) bench.Release {
	return func(ctx context.Context) error {
		deleted, err := releaseScript.Exec(ctx, conn, []string{name}, []string{token}).AsInt64()
		if err == nil && deleted != 1 {
			err = errors.New("the lock had expired")
		}
		return err
	}
}

func (r *redis) Leader(ctx context.Context) (int, error) {
	conn, err := r.dial()
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	return 1, conn.Do(ctx, conn.B().Ping().Build()).Error()
}

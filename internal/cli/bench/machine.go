package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/api"
)

// DiskCommand is the hidden command that measures the disk.
const DiskCommand = "__fdatasync"

// diskWriters is how many processes write at once: as many as servers of a
// cluster on one machine.
const diskWriters = 3

// machine is what the machine takes by itself, in ms.
type machine struct{ fdatasync, rpc float64 }

func measureMachine(ctx context.Context, cfg Config) (machine, error) {
	disk, err := Fdatasync(ctx, cfg.Binary, cfg.Dir, cfg.glance)
	if err != nil {
		return machine{}, fmt.Errorf("measuring the disk: %w", err)
	}
	rpc, err := RoundTrip(ctx, cfg.Client, cfg.glance)
	if err != nil {
		return machine{}, fmt.Errorf("measuring the round trip: %w", err)
	}
	return machine{disk, rpc}, nil
}

// Fdatasync lets three processes write to the disk of dir for d, all at once, and
// returns the mean of the medians that they measured, in ms. Binary is conclave.
func Fdatasync(ctx context.Context, binary, dir string, d time.Duration) (float64, error) {
	var writers sync.WaitGroup
	medians := make([]float64, diskWriters)
	problems := make([]error, diskWriters)
	for i := range diskWriters {
		writers.Go(func() {
			cmd := exec.CommandContext(ctx, binary, DiskCommand, "--dir", dir, "--for", d.String())
			cmd.Stderr = os.Stderr
			output, err := cmd.Output()
			if err == nil {
				medians[i], err = strconv.ParseFloat(strings.TrimSpace(string(output)), 64)
			}
			problems[i] = err
		})
	}
	writers.Wait()
	sum := 0.0
	for i, m := range medians {
		if problems[i] != nil {
			return 0, problems[i]
		}
		sum += m
	}
	return sum / diskWriters, nil
}

// Disk appends 4 KiB to a file in dir and syncs it, again and again for d, and
// returns the median time of it in ms.
func Disk(dir string, d time.Duration) (float64, error) {
	file, err := os.CreateTemp(dir, "fdatasync-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	block := make([]byte, 4096)
	return median(d, func() error {
		if _, err := file.Write(block); err != nil {
			return err
		}
		return datasync(file)
	})
}

// RoundTrip returns the median time of an empty call to the leader, in ms. It calls for a
// while. A leader that dies meanwhile is followed by the next, once.
func RoundTrip(ctx context.Context, cfg conclave.Config, glance time.Duration) (took float64, err error) {
	for range 2 {
		var leader string
		if leader, err = findLeader(ctx, cfg); err != nil {
			return 0, err
		}
		if took, err = ping(ctx, cfg, leader, glance); err == nil || ctx.Err() != nil {
			return took, err
		}
	}
	return took, err
}

// ping returns the median time of an empty call to a server, in ms.
func ping(ctx context.Context, cfg conclave.Config, server string, glance time.Duration) (float64, error) {
	secrecy := insecure.NewCredentials()
	if cfg.TLS != nil {
		secrecy = credentials.NewTLS(cfg.TLS)
	}
	conn, err := grpc.NewClient(server, grpc.WithTransportCredentials(secrecy))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*glance)
	defer cancel()
	client := api.NewConclaveClient(conn)
	return median(glance, func() error {
		// A server that has just started may lead before it listens for clients.
		_, err := client.Ping(ctx, &api.PingRequest{}, grpc.WaitForReady(true))
		return err
	})
}

// findLeader returns where the leader takes clients. A cluster that has just
// started, or changes its leader, gets time to have one.
func findLeader(ctx context.Context, cfg conclave.Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, err := conclave.Dial(ctx, cfg)
	if err != nil {
		return "", err
	}
	defer client.Close()
	for {
		status, err := admin.New(client).Status(ctx)
		if err != nil {
			return "", err
		}
		for _, m := range status.Members {
			if m.Leader && m.ClientAddress != "" {
				return m.ClientAddress, nil
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return "", errors.New("the cluster has no leader after 10 s")
		}
	}
}

// errNothing says that a measurement has no values.
var errNothing = errors.New("nothing was measured")

// median repeats f for d and returns the median time of it in ms.
func median(d time.Duration, f func() error) (float64, error) {
	var times []time.Duration
	for began := time.Now(); time.Since(began) < d; {
		before := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(before))
	}
	if len(times) == 0 {
		return 0, errNothing
	}
	slices.Sort(times)
	return float64(times[len(times)/2]) / 1e6, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/embed"
	load "github.com/conclave-io/conclave/internal/cli/bench"
)

// nearReport is the result of a program that contains one of the servers. It takes one lock
// repeatedly, in pairs of Lock and Unlock.
type nearReport struct {
	Near        []float64 `json:"near_pairs_per_s"`
	Agreement   []float64 `json:"agreement_pairs_per_s"`
	Allocations float64   `json:"allocations_a_pair"`
	Bytes       float64   `json:"bytes_a_pair"`
	Messages    uint64    `json:"messages"` // messages of algorithms during the measurement of near pairs
	Pairs       int       `json:"pairs"`
}

func (r *nearReport) near() *spread      { return spreadOf(r.Near) }
func (r *nearReport) agreement() *spread { return spreadOf(r.Agreement) }

func (r *nearReport) ratio() *spread {
	var all []float64
	for i, near := range r.Near {
		all = append(all, near/r.Agreement[i])
	}
	return spreadOf(all)
}

// near measures a cluster of three servers in this process.
func (l *guardedBench) near(ctx context.Context, r *guardedReport) error {
	members, err := l.members(ctx)
	defer func() {
		for _, m := range members {
			m.Close()
		}
	}()
	if err != nil {
		return err
	}
	inside := &guardedBench{bench: l.bench, cluster: l.cluster, Homes: &load.Homes{Control: members[0].Client, Servers: len(members)}}
	if err := inside.guard(ctx, underToken, "suzuki-kasami"); err != nil {
		return err
	}
	spell := time.Duration(l.seconds) * time.Second
	for _, name := range []string{underToken + "near", "near"} { // fetches the token and opens the session before the measurement
		if _, err := pairs(ctx, members[0].Client, name, time.Second); err != nil {
			return err
		}
	}
	for range l.bench.rounds {
		before, err := sent(ctx, members[0].Client)
		if err != nil {
			return err
		}
		var from, to runtime.MemStats
		runtime.ReadMemStats(&from)
		n, err := pairs(ctx, members[0].Client, underToken+"near", spell)
		if err != nil {
			return err
		}
		runtime.ReadMemStats(&to)
		after, err := sent(ctx, members[0].Client)
		if err != nil {
			return err
		}
		agreed, err := pairs(ctx, members[0].Client, "near", spell)
		if err != nil {
			return err
		}
		s := &r.Near
		s.Near, s.Agreement = append(s.Near, float64(n)/spell.Seconds()), append(s.Agreement, float64(agreed)/spell.Seconds())
		s.Pairs, s.Messages = s.Pairs+n, s.Messages+after-before
		s.Allocations, s.Bytes = float64(to.Mallocs-from.Mallocs)/float64(n), float64(to.TotalAlloc-from.TotalAlloc)/float64(n)
		fmt.Fprintf(os.Stderr, "  near %d pairs, agreement %d\n", n, agreed)
	}
	return nil
}

func (l *guardedBench) members(ctx context.Context) (members []*embed.Client, err error) {
	var listeners [3][2]net.Listener
	var peers []string
	for i := range listeners {
		for j := range listeners[i] {
			if listeners[i][j], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
				return nil, err
			}
		}
		peers = append(peers, fmt.Sprintf("%d=%s", i+1, listeners[i][1].Addr()))
	}
	for i, at := range listeners {
		m, err := embed.Open(ctx, embed.Config{Dir: filepath.Join(l.dir, fmt.Sprint("member-", i+1)), Member: &embed.Member{
			ID: uint64(i + 1), Peers: strings.Join(peers, ","), Listen: at[0].Addr().String(), Listener: at[0], PeerListener: at[1],
		}})
		if err != nil {
			return members, err
		}
		members = append(members, m)
	}
	return members, errors.Join(members[0].Ready(ctx))
}

// pairs acquires and releases one lock repeatedly for the given time, and returns the number of
// pairs.
func pairs(ctx context.Context, client *conclave.Client, name string, spell time.Duration) (n int, err error) {
	for end := time.Now().Add(spell); time.Now().Before(end); {
		for range 16 { // so that reading the clock has little effect
			held, err := client.Lock(ctx, name)
			if err != nil {
				return n, err
			}
			if err := held.Unlock(ctx); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

// sent returns how many messages of algorithms the servers have sent.
func sent(ctx context.Context, client *conclave.Client) (n uint64, err error) {
	v, err := admin.New(client).Homes(ctx)
	for _, m := range v.Members {
		if m.Home == nil {
			return 0, errors.New(m.Problem)
		}
		for _, space := range m.Home.Namespaces {
			n += space.Messages + space.Others
		}
	}
	return n, err
}

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/bench/competitor"
	load "github.com/conclave-io/conclave/internal/cli/bench"
)

// ruleCount is the number of rules during the turns with rules.
const ruleCount = 200

// ruledTurn is the result of one turn.
type ruledTurn struct {
	Rules   int      `json:"rules"`
	Clients int      `json:"clients"`
	Round   int      `json:"round"`
	Rate    float64  `json:"ops_per_s"`
	P50     *float64 `json:"acquire_ms_p50"`
	P99     *float64 `json:"acquire_ms_p99"`
	Failed  int64    `json:"failed"`
}

// rules measures the cost of access rules. Each round has one turn with rules and one without, and
// every second round begins with the turn with rules.
func rules(ctx context.Context, b *bench, c *competitor.Conclave, _ int) (section, error) {
	operator, err := conclave.Dial(ctx, conclave.Config{Servers: []string{"unix:" + c.Sockets[0]}})
	if err != nil {
		return section{}, err
	}
	defer operator.Close()
	if err := prepare(ctx, operator, c); err != nil {
		return section{}, err
	}
	var turns []ruledTurn
	for round := range b.rounds {
		for _, clients := range []int{1, 128} {
			for i := range 2 {
				t, err := b.underRules(ctx, operator, c, clients, (round+i)%2*ruleCount)
				if err != nil {
					return section{}, err
				}
				t.Round = round + 1
				turns = append(turns, t)
				fmt.Fprintf(os.Stderr, "  round %d, %d clients, %d rules: %.0f/s, p50 %.3f ms\n", t.Round, clients, t.Rules, t.Rate, *t.P50)
			}
		}
	}
	return section{rulesTable(turns), turns}, nil
}

// prepare adds rules to a new cluster in the mode "open", and creates a token for its clients.
func prepare(ctx context.Context, operator *conclave.Client, c *competitor.Conclave) error {
	if err := c.Raise(ctx, operator, 0); err != nil {
		return err
	}
	role := admin.Role{Name: "load", Rules: []string{`allow read,hold on prefix "bench-"`}}
	for i := range ruleCount - len(role.Rules) {
		role.Rules = append(role.Rules, fmt.Sprintf(`allow read,hold on prefix "team-%d/reports/%d/"`, i%20, i))
	}
	token, put, _ := admin.NewToken("load", time.Now().Add(24*time.Hour), "")
	c.Token = token
	return change(ctx, operator, admin.PutRole(role), put, admin.PutBinding(admin.Binding{Who: "token:load", Roles: []string{"load"}}), admin.SetMode("open"))
}

func change(ctx context.Context, operator *conclave.Client, edits ...admin.AccessEdit) error {
	_, err := admin.New(operator).ChangeAccess(ctx, admin.AccessChange{
		Edits:       edits,
		Force:       true, // the only administrator is the admin socket
		EndSessions: true, // ends the session of the client that waited for a leader, which has no name
	})
	return err
}

// underRules runs one turn with the given number of rules.
func (b *bench) underRules(ctx context.Context, operator *conclave.Client, c *competitor.Conclave, clients, count int) (ruledTurn, error) {
	mode := "open"
	if count > 0 {
		mode = "closed"
	}
	if err := change(ctx, operator, admin.SetMode(mode)); err != nil {
		return ruledTurn{}, err
	}
	lockers, stop, err := c.Lockers(ctx, load.Uncontended, clients, 1)
	if err != nil {
		return ruledTurn{}, err
	}
	defer stop()
	f, err := load.Load{Workload: load.Uncontended, Clients: lockers, Duration: time.Duration(b.seconds) * time.Second}.Run(ctx)
	return ruledTurn{Rules: count, Clients: clients, Rate: f.Rate(), P50: f.Acquire(50), P99: f.Acquire(99), Failed: f.Failed}, err
}

// rulesTable compares the two turns of each round.
func rulesTable(turns []ruledTurn) string {
	var rows [][]string
	for _, clients := range []int{1, 128} {
		ratios, values := make(map[string][]float64), make(map[string][]float64)
		var failed int64
		for i := 0; i < len(turns); i += 2 {
			with, without := turns[i], turns[i+1]
			if with.Rules == 0 {
				with, without = without, with
			}
			if with.Clients != clients {
				continue
			}
			failed += with.Failed + without.Failed
			for what, of := range map[string]func(ruledTurn) float64{
				"acquire p50, ms": func(t ruledTurn) float64 { return *t.P50 },
				"acquire p99, ms": func(t ruledTurn) float64 { return *t.P99 },
				"operations/s":    func(t ruledTurn) float64 { return t.Rate },
			} {
				values[what] = append(values[what], of(with))
				values["without "+what] = append(values["without "+what], of(without))
				ratios[what] = append(ratios[what], of(with)/of(without))
			}
		}
		for _, what := range []string{"acquire p50, ms", "acquire p99, ms", "operations/s"} {
			rows = append(rows, []string{
				plural(clients, "client") + ": " + what,
				spreadOf(values["without "+what]).String(), spreadOf(values[what]).String(), quartiles(ratios[what]), fmt.Sprint(failed),
			})
		}
	}
	return table([]string{"", "rules off", fmt.Sprintf("%d rules", ruleCount), "ratio (middle half)", "failed"}, rows)
}

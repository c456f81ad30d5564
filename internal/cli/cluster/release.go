package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/alike"
)

const releaseHelp = `Only the holder can release a lock. This command asks the holders of NAME to leave, or with
--election the leader. It requires --force.

The programs of the holders are told at once, with the reason. conclave lock and conclave elect end
their command: they send TERM first. The next waiter gets the lock when a holder has left, or after
one TTL of the holder's session. By then the holder knows that it lost the lock. A holder that asks
for the lock again waits behind all others.

A name that stays closed after its last hold (--at-least, --delay-after-loss) opens at once.`

// NewRelease returns the command release.
func NewRelease(a *connect.App) *cobra.Command {
	r := &releaser{app: a}
	cmd := &cobra.Command{
		Use:   "release NAME --force",
		Short: "Ask the holders of a lock, or a leader, to leave",
		Long:  releaseHelp,
		Annotations: ui.Statuses("0 the holders were asked to leave; with --wait: they have left. Or NAME was closed, and is open",
			"1 nobody holds NAME and it is not closed, or not with this --fence", "124 with --wait: a holder that was asked still holds it"),
		Example: `  conclave release nightly-report --force --reason "db1 goes down at 18:00"
  conclave release scheduler --election --force --wait 30s
  conclave release crawlers --force --fence 1099511627780    # one holder of several`,
		Args:              oneName,
		ValidArgsFunction: completeNames(a, &r.of),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.name = args[0]
			if err := r.check(cmd.Flags()); err != nil {
				return err
			}
			return r.run(cmd.Context())
		},
	}
	host, _ := os.Hostname() // for people to read
	r.of.register(cmd, "ask the leader of an election, not the holders of a lock")
	cmd.Flags().BoolVar(&r.force, "force", false, "confirm that the holders are asked to leave")
	cmd.Flags().StringVar(&r.reason, "reason", "conclave release, on "+host, "the reason that the holders are told")
	cmd.Flags().Uint64Var(&r.fence, "fence", 0, "ask only the holder with this fence")
	cmd.Flags().Var(&r.wait, "wait", "wait up to this long until the holders have left, also if no server answers (default: do not wait)")
	cmd.Flags().Lookup("reason").DefValue = "conclave release, on HOST"
	return a.WithJSON(cmd)
}

// releaser asks holders to leave.
type releaser struct {
	app    *connect.App
	of     ResourceClass
	name   string
	force  bool
	reason string
	fence  uint64
	wait   ui.Duration
}

func (r *releaser) check(flags interface{ Changed(string) bool }) error {
	switch {
	case !r.force:
		return ui.Failure(ui.StatusError, "%s %s: only its %s can release it; set --force to ask it to leave", r.of, alike.Quoted(r.name), r.of.leaves())
	case len(r.reason) > admin.MaxReason:
		return reasonTooLong(r.reason)
	case flags.Changed("fence") && r.fence == 0:
		return errors.New("--fence: 0: expected the fence of a holder, as `conclave why` shows it")
	case flags.Changed("wait") && r.wait <= 0:
		return ui.NotPositive("--wait", r.wait)
	}
	return nil
}

// reasonTooLong returns the error of a reason that is too long.
func reasonTooLong(reason string) error {
	return fmt.Errorf("--reason: %d bytes: must have at most %d bytes", len(reason), admin.MaxReason)
}

// releaseView has the holders that were asked, and with --wait how their holds ended.
type releaseView struct {
	Name  string             `json:"name"`
	Asked []*jsonform.Holder `json:"asked"`
	Ended []jsonform.Ended   `json:"ended,omitempty"`
	// Opened are the places that stayed closed after their holds, and are open now.
	Opened []jsonform.Closed `json:"opened,omitempty"`
}

func (r *releaser) run(ctx context.Context) error {
	// --wait is how long the user is willing to wait, with a quorum or without.
	r.app.Client.Timeout = max(r.app.Client.Timeout, r.wait)
	return r.app.Follow(ctx, func(ctx context.Context, client *conclave.Client) error {
		asked, opened, err := r.ask(ctx, client)
		if errors.Is(err, conclave.ErrNotFound) {
			return ui.Failure(ui.StatusNo, "%s", r.nobody())
		}
		if err != nil {
			return connect.Silence(err, r.app.Client.Timeout)
		}
		view := releaseView{Name: r.name, Asked: ui.Each(asked, forms.HolderOf), Opened: ui.Each(opened, forms.ClosedOf)}
		if r.wait > 0 {
			if view.Ended, err = r.await(ctx, client, asked); err != nil {
				return err
			}
		}
		return r.app.Print(view, func(w io.Writer) error { return r.tell(w, &view) })
	})
}

func (r *releaser) nobody() string {
	if r.fence != 0 {
		return fmt.Sprintf("%s %s: nobody %s it with fence %d", r.of, alike.Quoted(r.name), r.of.has(), r.fence)
	}
	return fmt.Sprintf("%s %s: nobody %s it", r.of, alike.Quoted(r.name), r.of.has())
}

// ask asks the holders to leave and returns them, except those that have left meanwhile. It opens what
// stays closed, and returns that.
func (r *releaser) ask(ctx context.Context, client *conclave.Client) ([]conclave.Holder, []conclave.Closed, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.app.Client.Timeout))
	defer cancel()
	before, err := r.of.explain(ctx, client, r.name)
	if err != nil {
		return nil, nil, err
	}
	var options []admin.RevokeOption
	if r.fence != 0 {
		options = append(options, admin.OnlyFence(r.fence))
	}
	fence, err := r.of.Revoke(client)(ctx, r.name, r.reason, options...)
	if err != nil {
		return nil, nil, err
	}
	opened := slices.DeleteFunc(before.Resource.Closed, func(c conclave.Closed) bool { return r.fence != 0 && c.Fence != r.fence })
	asked := slices.DeleteFunc(before.Resource.Holders, func(h conclave.Holder) bool { return r.fence != 0 && h.Fence != r.fence })
	known := slices.ContainsFunc(asked, func(h conclave.Holder) bool { return h.Fence == fence }) ||
		slices.ContainsFunc(opened, func(c conclave.Closed) bool { return c.Fence == fence })
	if !known {
		asked = append(asked, conclave.Holder{Fence: fence}) // granted between the two calls
	}
	return asked, opened, nil
}

// await waits until the holders have left, and returns how their holds ended.
func (r *releaser) await(ctx context.Context, client *conclave.Client, asked []conclave.Holder) ([]jsonform.Ended, error) {
	deadline := time.Now().Add(time.Duration(r.wait))
	for {
		round, cancel := context.WithTimeout(ctx, max(time.Until(deadline), lastAnswer))
		x, err := r.of.explain(round, client, r.name)
		cancel()
		if err != nil {
			return nil, connect.Silence(err, r.wait)
		}
		left := slices.IndexFunc(x.Resource.Holders, r.meant)
		if left < 0 {
			return endedAmong(x, asked), nil
		}
		if !time.Now().Before(deadline) {
			return nil, ui.Failure(ui.StatusNotAcquired, "%s %s: still %s after %v%s", r.of, alike.Quoted(r.name), r.of.Taken(), &r.wait, By(x.Resource.Holders[left]))
		}
		select {
		case <-time.After(min(releasePoll, time.Until(deadline))):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lastAnswer is how long the last check may take, which begins when --wait is over.
const lastAnswer = time.Second

// releasePoll is the pause between two checks whether the holders have left.
const releasePoll = 50 * time.Millisecond

// meant reports whether a holder is one that was asked to leave.
func (r *releaser) meant(h conclave.Holder) bool {
	return h.Revoked && (r.fence == 0 || h.Fence == r.fence)
}

func endedAmong(x conclave.Explanation, asked []conclave.Holder) []jsonform.Ended {
	ended := []jsonform.Ended{}
	for _, p := range x.Past {
		if slices.ContainsFunc(asked, func(h conclave.Holder) bool { return h.Fence == p.Fence }) {
			ended = append(ended, forms.EndedOf(p))
		}
	}
	return ended
}

func (r *releaser) tell(w io.Writer, view *releaseView) error {
	for _, h := range view.Asked {
		who := "the holder"
		if h.Host != "" {
			who = ui.Party(h.Owner, h.Program, h.PID, h.Host)
		}
		if _, err := fmt.Fprintf(w, "asked %s, fence %d, to leave %s %s\n", who, h.Fence, r.of, alike.Quoted(r.name)); err != nil {
			return err
		}
	}
	for _, c := range view.Opened {
		if _, err := fmt.Fprintf(w, "opened %s %s, which stayed closed after the hold with fence %d\n", r.of, alike.Quoted(r.name), c.Fence); err != nil {
			return err
		}
	}
	for _, p := range view.Ended {
		if _, err := fmt.Fprintf(w, "fence %d: %s\n", p.Fence, howEnded(conclave.Ended{How: p.How})); err != nil {
			return err
		}
	}
	return nil
}

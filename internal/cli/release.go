package cli

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
)

const releaseHelp = `Only who holds a lock gives it up. With --force its holders, or with --election the
leader, are asked to leave: their programs learn of it at once, with the reason, and
a command under conclave lock or conclave elect is ended, TERM first. The lock goes
to the next who waits when a holder has left, or one TTL of its session later if it
does not: by then it cannot have been at work without knowing. The holder that is
asked to leave may come back, and then waits behind those who wait.

Exit status: 0 if the holders were asked to leave (with --wait: have left);
    1  nobody holds it, or nobody with that --fence
  124  with --wait: somebody who was asked still holds it
  125  conclave itself failed, or was called wrongly (also without --force)`

func newRelease(a *app) *cobra.Command {
	r := &releaser{app: a}
	cmd := &cobra.Command{
		Use:   "release NAME --force",
		Short: "Ask the holders of a lock, or a leader, to leave",
		Long:  releaseHelp,
		Example: `  conclave release nightly-report --force --reason "db1 goes down at 18:00"
  conclave release scheduler --election --force --wait 30s
  conclave release crawlers --force --fence 1099511627780    # one holder of several`,
		Args:              oneName,
		ValidArgsFunction: a.completeNames(&r.of),
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
	cmd.Flags().BoolVar(&r.force, "force", false, "ask those who hold it to leave")
	cmd.Flags().StringVar(&r.reason, "reason", "conclave release, on "+host, "why, for the holders to read")
	cmd.Flags().Uint64Var(&r.fence, "fence", 0, "ask only the holder with this fence")
	cmd.Flags().Var(&r.wait, "wait", "wait so long for them to have left (default: do not wait)")
	cmd.Flags().Lookup("wait").DefValue = ""
	cmd.Flags().Lookup("reason").DefValue = "conclave release, on HOST"
	a.addJSON(cmd)
	return cmd
}

// releaser asks holders to leave.
type releaser struct {
	app    *app
	of     resourceKind
	name   string
	force  bool
	reason string
	fence  uint64
	wait   duration
}

func (r *releaser) check(flags interface{ Changed(string) bool }) error {
	switch {
	case !r.force:
		return failure(StatusError, "only who %s %s %q gives it up; --force asks them to leave, and takes it away one TTL later if they do not", r.of.has(), r.of, r.name)
	case len(r.reason) > conclave.MaxReason:
		return failure(StatusError, "--reason has %d bytes; give at most %d", len(r.reason), conclave.MaxReason)
	case flags.Changed("fence") && r.fence == 0:
		return errors.New("--fence 0: give the fence of a holder, as conclave why shows it")
	case flags.Changed("wait") && r.wait <= 0:
		return failure(StatusError, "--wait %v: give more than zero", &r.wait)
	}
	return nil
}

// releaseView is what was asked of whom, and how it ended if that was waited for.
type releaseView struct {
	Name  string       `json:"name"`
	Asked []holderView `json:"asked"`
	Ended []endedView  `json:"ended,omitempty"`
}

func (r *releaser) run(ctx context.Context) error {
	return r.app.follow(ctx, func(ctx context.Context, client *conclave.Client) error {
		asked, err := r.ask(ctx, client)
		if errors.Is(err, conclave.ErrNotFound) {
			return failure(StatusNo, "%s", r.nobody())
		}
		if err != nil {
			return err
		}
		view := releaseView{Name: r.name, Asked: resourceJSON(&conclave.Resource{Holders: asked}).Holders}
		if r.wait > 0 {
			if view.Ended, err = r.await(ctx, client, asked); err != nil {
				return err
			}
		}
		return r.app.print(view, func(w io.Writer) error { return r.tell(w, &view) })
	})
}

func (r *releaser) nobody() string {
	if r.fence != 0 {
		return fmt.Sprintf("nobody %s %s %q with the fence %d", r.of.has(), r.of, r.name, r.fence)
	}
	return fmt.Sprintf("nobody %s %s %q", r.of.has(), r.of, r.name)
}

// ask returns who is asked to leave, as far as they have not left already.
func (r *releaser) ask(ctx context.Context, client *conclave.Client) ([]conclave.Holder, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.app.client.timeout))
	defer cancel()
	before, err := r.of.explain(ctx, client, r.name)
	if err != nil {
		return nil, err
	}
	var options []conclave.RevokeOption
	if r.fence != 0 {
		options = append(options, conclave.OnlyFence(r.fence))
	}
	revoke := client.Revoke
	if r.of.election {
		revoke = client.RevokeElection
	}
	fence, err := revoke(ctx, r.name, r.reason, options...)
	if err != nil {
		return nil, err
	}
	asked := slices.DeleteFunc(before.Resource.Holders, func(h conclave.Holder) bool { return r.fence != 0 && h.Fence != r.fence })
	if !slices.ContainsFunc(asked, func(h conclave.Holder) bool { return h.Fence == fence }) {
		asked = append(asked, conclave.Holder{Fence: fence}) // it came in between
	}
	return asked, nil
}

// await returns how the holds ended that were asked to leave.
func (r *releaser) await(ctx context.Context, client *conclave.Client, asked []conclave.Holder) ([]endedView, error) {
	deadline := time.Now().Add(time.Duration(r.wait))
	for {
		round, cancel := context.WithTimeout(ctx, time.Duration(r.app.client.timeout))
		x, err := r.of.explain(round, client, r.name)
		cancel()
		if err != nil {
			return nil, err
		}
		left := slices.IndexFunc(x.Resource.Holders, r.meant)
		if left < 0 {
			return endedAmong(x, asked), nil
		}
		if !time.Now().Before(deadline) {
			return nil, failure(StatusNotAcquired, "%s %q: after %v it is still %s%s", r.of, r.name, &r.wait, r.taken(), by(x.Resource.Holders[left]))
		}
		select {
		case <-time.After(min(releasePoll, time.Until(deadline))):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// releasePoll is how often it is looked whether the holders have left.
const releasePoll = 50 * time.Millisecond

// meant says whether a holder is one that was asked to leave.
func (r *releaser) meant(h conclave.Holder) bool {
	return h.Revoked && (r.fence == 0 || h.Fence == r.fence)
}

func (r *releaser) taken() string {
	if r.of.election {
		return "led"
	}
	return "held"
}

func endedAmong(x conclave.Explanation, asked []conclave.Holder) []endedView {
	ended := []endedView{}
	for _, p := range x.Past {
		if slices.ContainsFunc(asked, func(h conclave.Holder) bool { return h.Fence == p.Fence }) {
			ended = append(ended, endedView(p))
		}
	}
	return ended
}

func (r *releaser) tell(w io.Writer, view *releaseView) error {
	for _, h := range view.Asked {
		who := "the holder"
		if h.Host != "" {
			who = party(h.Owner, h.Program, h.PID, h.Host)
		}
		if _, err := fmt.Fprintf(w, "asked %s, fence %d, to leave %s %q\n", who, h.Fence, r.of, r.name); err != nil {
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

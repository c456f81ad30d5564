package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/cluster"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/version"
)

// reform is a command that changes the rules.
type reform struct {
	*connect.App
	force, dryRun, revokeHolds, endSessions bool
}

// register adds the flags of commands that may take rights away, and returns the command.
func (r *reform) register(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&r.revokeHolds, "revoke-holds", false, "ask holders to leave if the new rules would not grant them what they hold")
	return r.registerForce(cmd)
}

func (r *reform) registerForce(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&r.force, "force", false, "change the rules even if afterwards nobody may change them, except through an admin socket")
	return r.WithJSON(cmd)
}

// edits are changes of the rules, and a line that describes them.
type edits struct {
	list []admin.AccessEdit
	done string
}

// reformed is the result of a change of the rules.
type reformed struct {
	done string
	// AccessChanged has the holds that the new rules would not grant, and revoked counts the
	// holders of those that were asked to leave.
	admin.AccessChanged
	revoked int
}

// reformAttempts bounds the retries of a change that conflicts with another change of the rules.
const reformAttempts = 5

// change reads the rules, changes them and prints the result.
func (r *reform) change(cmd *cobra.Command, of func(admin.Access) (edits, error)) error {
	return r.Ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
		done, err := r.make(ctx, client, of)
		if err == nil {
			err = r.dealWith(cmd.Context(), client, &done)
		}
		if err != nil {
			return err
		}
		if r.dryRun {
			r.Say("dry run: nothing changed")
		}
		return r.PrintLine(forms.AccessChangedOf(done.done, done.AccessChanged, done.revoked), done.done)
	})
}

// make changes the rules. It retries if another change came in between.
func (r *reform) make(ctx context.Context, client *conclave.Client, of func(admin.Access) (edits, error)) (done reformed, err error) {
	begun := time.Now()
	for attempt, again := 1, true; again; attempt++ {
		done, err = r.once(ctx, client, of)
		again = errors.Is(err, admin.ErrConflict) && attempt < reformAttempts
		if err != nil && !again {
			again, err = levelToo(ctx, client, begun, err)
		}
	}
	return done, err
}

// once changes the rules, unless another change came in between.
func (r *reform) once(ctx context.Context, client *conclave.Client, of func(admin.Access) (edits, error)) (reformed, error) {
	rules, err := admin.New(client).Access(ctx)
	if err != nil {
		return reformed{}, err
	}
	e, err := of(rules)
	if err != nil {
		return reformed{}, err
	}
	done := reformed{done: e.done, AccessChanged: admin.AccessChanged{Revision: rules.Revision}}
	if len(e.list) == 0 {
		return done, nil
	}
	changed, err := admin.New(client).ChangeAccess(ctx, admin.AccessChange{Edits: e.list, Expected: rules.Revision, Force: r.force, DryRun: r.dryRun, EndSessions: r.endSessions})
	if err != nil {
		return done, err
	}
	done.AccessChanged = changed
	return done, nil
}

// dealWith reports which holds the new rules would not grant, and revokes them if --revoke-holds
// is given.
func (r *reform) dealWith(ctx context.Context, client *conclave.Client, done *reformed) error {
	if done.Denied == 0 {
		return nil
	}
	what := "their holders keep them; --revoke-holds asks them to leave"
	if r.revokeHolds && !r.dryRun {
		what = "their holders are asked to leave"
	}
	r.Say("existing holds that the new rules would not grant: %d (%s); %s", done.Denied, someOf(done), what)
	if !r.revokeHolds || r.dryRun {
		return nil
	}
	listed, err := r.revokeAll(ctx, client, done)
	if stay := int(done.Denied) - listed; err == nil && stay > 0 {
		err = fmt.Errorf("revoke holds after the rules changed: %d holds stay, because you may not read the names of their locks", stay)
	}
	return err
}

// revokeAll asks the holders of all holds to leave that the rules would not grant, and returns how
// many the servers have listed. One answer lists a part of them.
func (r *reform) revokeAll(ctx context.Context, client *conclave.Client, done *reformed) (listed int, err error) {
	none := admin.AccessChange{Edits: []admin.AccessEdit{admin.SetMode(access.Closed.String())}, Force: true, DryRun: true}
	for holds := done.Holds; len(holds) > 0; {
		listed += len(holds)
		if err := r.revoke(ctx, client, holds, done); err != nil || uint64(listed) >= done.Denied {
			return listed, err
		}
		rest, err := r.changeAccess(ctx, client, none)
		if err != nil {
			return listed, fmt.Errorf("revoke holds after the rules changed: %w", err)
		}
		holds = rest.Holds // without those whose holders were asked
		done.Holds = append(done.Holds, holds...)
	}
	return listed, nil
}

// changeAccess is Client.ChangeAccess, for at most the time that a call may take.
func (r *reform) changeAccess(ctx context.Context, client *conclave.Client, change admin.AccessChange) (admin.AccessChanged, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.Client.Timeout))
	defer cancel()
	return admin.New(client).ChangeAccess(ctx, change)
}

// revokedAtOnce is how many holders are asked to leave at the same time.
const revokedAtOnce = 32

func (r *reform) revoke(ctx context.Context, client *conclave.Client, holds []admin.DeniedHold, done *reformed) error {
	for some := range slices.Chunk(holds, revokedAtOnce) {
		errs := make([]error, len(some))
		var asking sync.WaitGroup
		for i, h := range some {
			asking.Go(func() { errs[i] = r.revokeOne(ctx, client, h) })
		}
		asking.Wait()
		for _, err := range errs {
			switch {
			case err == nil:
				done.revoked++
			case !errors.Is(err, conclave.ErrNotFound): // released meanwhile
				return fmt.Errorf("revoke holds after the rules changed: %w", err)
			}
		}
	}
	return nil
}

func (r *reform) revokeOne(ctx context.Context, client *conclave.Client, h admin.DeniedHold) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.Client.Timeout))
	defer cancel()
	_, err := cluster.ResourceClass{Election: h.Election}.Revoke(client)(ctx, h.Name, "the rules of access no longer allow it", admin.OnlyFence(h.Fence))
	return err
}

// someOf names the first holds that the new rules would not grant.
func someOf(done *reformed) string {
	const named = 3
	var some []string
	for _, h := range done.Holds[:min(named, len(done.Holds))] {
		some = append(some, fmt.Sprintf("%v %s of %s", cluster.ResourceClass{Election: h.Election}, ui.Shown(h.Name), ui.Shown(cmp.Or(h.Owner, "anonymous"))))
	}
	if done.Denied > uint64(len(some)) {
		some = append(some, "...")
	}
	return strings.Join(some, ", ")
}

// young is how long a change waits for the level to rise. A new cluster reaches the newest
// level once its servers have connected. Until then it answers like an old cluster.
const young = 2 * time.Second

// levelToo checks whether the level of the cluster is too low for rules of access. If so, it
// waits briefly and returns again, or returns why the level is not higher.
func levelToo(ctx context.Context, client *conclave.Client, begun time.Time, err error) (again bool, why error) {
	now, unknown := admin.New(client).Upgrade(ctx)
	switch {
	case unknown != nil || now.Level >= version.Access:
		return false, err
	case !now.Held && time.Since(begun) < young:
		select {
		case <-time.After(20 * time.Millisecond):
			return true, nil
		case <-ctx.Done():
			return false, err
		}
	case len(now.Obstacles) > 0:
		return false, fmt.Errorf("level %d: rules of access need level %d: %s", now.Level, version.Access, strings.Join(now.Obstacles, "; "))
	case now.Target < version.Access:
		return false, fmt.Errorf("level %d: rules of access need level %d; upgrade the servers to a release that has it", now.Level, version.Access)
	}
	return false, fmt.Errorf("level %d: rules of access need level %d; raise it with `conclave upgrade finish`", now.Level, version.Access)
}

// warn reports rules that probably match more than intended.
func (r *reform) warn(rules []access.Rule) {
	for _, rule := range rules {
		if text := rule.Warning(); text != "" {
			r.Say("warning: %s", text)
		}
	}
}

// rolesOf returns the roles that a binding has now.
func rolesOf(rules admin.Access, who string) []string {
	for _, b := range rules.Bindings {
		if b.Who == who {
			return b.Roles
		}
	}
	return nil
}

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/service/access"
)

// NewMember returns the command member.
func NewMember(a *connect.App) *cobra.Command {
	return ui.Group(&cobra.Command{
		Use:   "member",
		Short: "Add, remove, promote and list the servers of the cluster",
		Long: `The cluster changes one server at a time, while it runs.

To add a server, start it with conclave serve --join. The cluster gives it an id and sends it the
log. It is a learner, without a vote, until it has caught up. To replace a server that is gone for
good, remove it, and let a new one join.`,
		Example: `  conclave member list
  conclave member remove 2
  conclave member add 10.0.0.4:7500`,
	}, newMemberList(a), newMemberAdd(a), newMemberPromote(a), newMemberLead(a), newMemberRemove(a))
}

func newMemberList(a *connect.App) *cobra.Command {
	return a.WithJSON(&cobra.Command{
		Use:   "list",
		Short: "List the servers with their roles and how far they lag behind",
		Long: `BEHIND counts the entries of the log that a server does not have yet.

If another process was started with a copy of the data directory of a server, a line below the table
names it for ten minutes after it was last refused.`,
		Example: `  conclave member list
  conclave member list --servers 10.0.0.1:7400,10.0.0.2:7400
  conclave member list --json`,
		Args: ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.Show(a, cmd, (*admin.Admin).Members, func(members []admin.Member) error {
				return a.Print(map[string]any{"members": ui.Each(members, forms.MemberOf)}, func(w io.Writer) error { return membersTable(w, members) })
			})
		},
	})
}

func membersTable(w io.Writer, members []admin.Member) error {
	t := ui.NewTable(w, "SERVER", "ROLE", "STAGE", "CLIENTS AT", "PEERS AT", "CONNECTED", "BEHIND")
	for _, m := range members {
		behind := "-" // the server has never answered
		if m.MatchIndex > 0 {
			behind = ui.Number(m.Behind)
		}
		t.Row(ui.Number(m.ID), role(m), string(m.Stage), ui.Shown(m.ClientAddress), ui.Shown(m.PeerAddress), ui.Yes(m.Connected), behind)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, m := range members {
		if m.CopyAddress == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "two processes run with the data of server %d: the one at %s was refused at %s\n",
			m.ID, ui.Shown(m.CopyAddress), m.CopyRefused.Local().Format(time.TimeOnly)); err != nil {
			return err
		}
	}
	return nil
}

// joinLife is how long a join token is valid.
const joinLife = time.Hour

func newMemberAdd(a *connect.App) *cobra.Command {
	var learner bool
	var file connect.TokenFile
	cmd := &cobra.Command{
		Use:   "add PEER_ADDRESS",
		Short: "Reserve an id for a new server and print how to start it",
		Long: `The new server will accept other servers at PEER_ADDRESS (host:port). The command reserves its id
and prints the command that starts it. A server can also join without a reservation. To give up
the id, use conclave member remove.

If the cluster has rules of access, the command also creates a join token. It lets one server
join at PEER_ADDRESS within one hour. A server whose certificate has the verb members does not
need it.`,
		Example: `  conclave member add 10.0.0.4:7500
  conclave member add 10.0.0.4:7500 --file join.token
  conclave member add 10.0.0.4:7500 --learner --json`,
		Args: ui.Takes("PEER_ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := file.Check(); err != nil {
				return err
			}
			return a.Ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				view, err := addMember(a, ctx, client, args[0], learner, file)
				if err != nil {
					return err
				}
				return a.Print(view, func(w io.Writer) error { return showJoin(a, w, &view, args[0]) })
			})
		},
	}
	file.Register(cmd.Flags(), "the join token")
	cmd.Flags().BoolVar(&learner, "learner", false, "the server stays a learner, without a vote, until you promote it")
	return a.WithJSON(cmd)
}

// addMember reserves an id for a server, and creates the join token that it needs.
func addMember(a *connect.App, ctx context.Context, client *conclave.Client, peerAddress string, learner bool, file connect.TokenFile) (view joinView, err error) {
	if view.ID, err = admin.New(client).AddMember(ctx, peerAddress, learner); err != nil {
		return view, err
	}
	view.Command = joinCommand(a, ctx, client, peerAddress)
	token, err := joinToken(ctx, client, peerAddress)
	if err != nil {
		return view, fmt.Errorf("create a join token for server %d at %s: %w", view.ID, ui.Shown(peerAddress), err)
	}
	if token == "" {
		return view, nil
	}
	view.Command += " --join-token-file " + cmp.Or(string(file), "join.token")
	if file != "" {
		return view, file.Write(token)
	}
	view.Token = token
	return view, nil
}

// joinView is what a new server needs.
type joinView struct {
	ID      uint64 `json:"id"`
	Command string `json:"command"`
	Token   string `json:"token,omitempty"`
}

func showJoin(a *connect.App, w io.Writer, view *joinView, peerAddress string) error {
	a.Say("server %d is reserved for %s; start it there with your own --data, --listen and certificates:", view.ID, ui.Shown(peerAddress))
	fmt.Fprintln(w, view.Command)
	if view.Token == "" {
		return nil
	}
	a.Say("write this token to the file join.token there; it lets the server join within one hour:")
	_, err := fmt.Fprintln(w, view.Token)
	return err
}

// joinToken creates a token that lets a server join at an address. It returns "" if the cluster
// requires none.
func joinToken(ctx context.Context, client *conclave.Client, peerAddress string) (string, error) {
	who, err := admin.New(client).WhoAmI(ctx)
	if err != nil || who.Mode != access.Closed.String() {
		return "", err
	}
	token, put := admin.NewJoinToken(peerAddress, time.Now().Add(joinLife))
	_, err = admin.New(client).ChangeAccess(ctx, admin.AccessChange{Edits: []admin.AccessEdit{put}})
	return token, err
}

// joinCommand returns the command for the machine of a new server. It prefers the addresses that
// the servers advertise over those in --servers, which may work only here.
func joinCommand(a *connect.App, ctx context.Context, client *conclave.Client, peerAddress string) string {
	servers := a.Client.Servers
	if members, err := admin.New(client).Members(ctx); err == nil {
		var known []string
		for _, m := range members {
			if m.Voter && m.ClientAddress != "" {
				known = append(known, m.ClientAddress)
			}
		}
		if len(known) > 0 {
			servers = known
		}
	}
	return fmt.Sprintf("conclave serve --join %s --data conclave-data --listen HOST:7400 --peer-listen %s", strings.Join(servers, ","), peerAddress)
}

func newMemberPromote(a *connect.App) *cobra.Command {
	return changesMember(a, "promote", 4, "has a vote", (*admin.Admin).PromoteMember, &cobra.Command{
		Short: "Give a vote to a learner that has caught up",
		Long:  "conclave member list shows how far a learner lags behind.",
	})
}

func newMemberLead(a *connect.App) *cobra.Command {
	return changesMember(a, "lead", 3, "leads", (*admin.Admin).LeadMember, &cobra.Command{
		Short: "Make a server the leader",
		Long: `The command transfers the leadership of the cluster to a server with a vote, and returns once that
server leads. Locks, elections and sessions do not change. Requests are delayed by some
milliseconds. The command fails if the server is not up, or more than 100 entries behind.`,
	})
}

func newMemberRemove(a *connect.App) *cobra.Command {
	var force bool
	remove := func(operator *admin.Admin, ctx context.Context, id uint64) error {
		return operator.RemoveMember(ctx, id, force)
	}
	cmd := changesMember(a, "remove", 2, "removed", remove, &cobra.Command{
		Short: "Remove a server for good",
		Long: `The server stops, and keeps its data directory. Its id is never used again. A leader first hands
over to another server. The command fails if the remaining voters that are up
would not be a quorum. When it succeeds, the cluster does not need the server any more.`,
	})
	cmd.Flags().BoolVar(&force, "force", false, "remove the server even if the remaining voters that are up are not a quorum, and do not wait until they have stored it")
	return cmd
}

// changesMember completes a command that changes one server and prints what was done. The examples
// are about the server with the id example.
func changesMember(a *connect.App, name string, example int, done string, change func(*admin.Admin, context.Context, uint64) error, cmd *cobra.Command) *cobra.Command {
	cmd.Use, cmd.Args = name+" ID", ui.Takes("ID")
	cmd.Example = fmt.Sprintf("  conclave member list\n  conclave member %[1]s %[2]d\n  conclave member %[1]s %[2]d --json", name, example)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := strconv.ParseUint(args[0], 10, 64)
		if err != nil || id == 0 {
			return fmt.Errorf("server: %q: expected an id of at least 1; `conclave member list` shows them", args[0])
		}
		return a.Ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
			if err := change(admin.New(client), ctx, id); err != nil {
				return err
			}
			return a.PrintLine(map[string]any{"id": id, "done": true}, fmt.Sprintf("server %d %s", id, done))
		})
	}
	return a.WithJSON(cmd)
}

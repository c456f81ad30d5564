package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/outfile"
	"github.com/conclave-io/conclave/service/access"
)

func newMember(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "member",
		Short: "Add, remove, promote and list the servers of the cluster",
		Long: `Member changes which servers the cluster has, one at a time, while it runs.

A new server needs nothing but ` + "`conclave serve --join`" + `: it gets its id, receives the
log as a learner, and has a vote once it has caught up. To replace a server that is
gone for good, remove it, then let a new one join.`,
		Example: `  conclave member list
  conclave member remove 2
  conclave member add 10.0.0.4:7500`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s does not know %q: it takes list, add, promote, lead or remove", cmd.CommandPath(), args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMemberList(a), newMemberAdd(a), newMemberPromote(a), newMemberLead(a), newMemberRemove(a))
	return cmd
}

func newMemberList(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the servers with their roles, and how far each is behind",
		Example: `  conclave member list
  conclave member list --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				members, err := client.Members(ctx)
				if err != nil {
					return err
				}
				views := []memberView{}
				for _, m := range members {
					views = append(views, memberView(m))
				}
				return a.print(map[string]any{"members": views}, func(w io.Writer) error { return membersTable(w, members) })
			})
		},
	}
	a.addJSON(cmd)
	return cmd
}

func membersTable(w io.Writer, members []conclave.Member) error {
	t := newTable(w, "SERVER", "ROLE", "STAGE", "CLIENTS AT", "PEERS AT", "CONNECTED", "BEHIND")
	for _, m := range members {
		behind := "-" // nothing was ever heard of it
		if m.MatchIndex > 0 {
			behind = number(m.Behind)
		}
		t.row(number(m.ID), role(m), string(m.Stage), shown(m.ClientAddress), shown(m.PeerAddress), yes(m.Connected), behind)
	}
	return t.flush()
}

// joinLife is how long a join token is valid.
const joinLife = time.Hour

func newMemberAdd(a *app) *cobra.Command {
	var learner bool
	var file string
	cmd := &cobra.Command{
		Use:   "add PEER_ADDRESS",
		Short: "Reserve an id for a new server and print how to start it",
		Long: `Add reserves an id for a server that is to take other servers at PEER_ADDRESS, and
prints the command that starts it there. It changes nothing else, and a server can
join without it; ` + "`conclave member remove`" + ` gives the id up again.

If the cluster has rules of access, Add also makes a join token. It lets one server join,
at PEER_ADDRESS, within one hour. A server whose certificate has the verb members needs none.`,
		Example: `  conclave member add 10.0.0.4:7500
  conclave member add 10.0.0.4:7500 --file join.token
  conclave member add 10.0.0.4:7500 --learner --json`,
		Args: oneArgument("the peer address of the new server, host:port"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				if _, err := outfile.Place(file); err != nil {
					return fmt.Errorf("--file: %w", err)
				}
			}
			return a.ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				id, err := client.AddMember(ctx, args[0], learner)
				if err != nil {
					return err
				}
				view := joinView{ID: id, Command: a.joinCommand(ctx, client, args[0])}
				token, err := joinToken(ctx, client, args[0])
				if err != nil {
					return fmt.Errorf("server %d is to come at %s, but there is no join token for it: %w", id, shown(args[0]), err)
				}
				if token != "" {
					view.Command += " --join-token-file " + cmp.Or(file, "join.token")
					if file == "" {
						view.Token = token
					} else if err := writeToken(file, token); err != nil {
						return err
					}
				}
				return a.print(view, func(w io.Writer) error { return a.showJoin(w, &view, args[0]) })
			})
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "write the join token to this file, which only its owner may read (default: print it)")
	cmd.Flags().BoolVar(&learner, "learner", false, "the server stays a learner, without a vote, until it is promoted")
	a.addJSON(cmd)
	return cmd
}

// joinView is what a new server needs.
type joinView struct {
	ID      uint64 `json:"id"`
	Command string `json:"command"`
	Token   string `json:"token,omitempty"`
}

func (a *app) showJoin(w io.Writer, view *joinView, peerAddress string) error {
	a.say("server %d is to come at %s; start it there with your own --data, --listen and certificates:", view.ID, shown(peerAddress))
	fmt.Fprintln(w, view.Command)
	if view.Token == "" {
		return nil
	}
	a.say("this token, in the file join.token there, lets it join within one hour:")
	_, err := fmt.Fprintln(w, view.Token)
	return err
}

// joinToken makes a token that lets a server join at an address, if the cluster asks for one.
func joinToken(ctx context.Context, client *conclave.Client, peerAddress string) (string, error) {
	who, err := client.WhoAmI(ctx)
	if err != nil || who.Mode != access.Closed.String() {
		return "", err
	}
	token, put := conclave.NewJoinToken(peerAddress, time.Now().Add(joinLife))
	_, err = client.ChangeAccess(ctx, conclave.AccessChange{Edits: []conclave.AccessEdit{put}})
	return token, err
}

// joinCommand is what to type on the machine of a new server. It names those
// servers that can be reached there, as far as anybody knows.
func (a *app) joinCommand(ctx context.Context, client *conclave.Client, peerAddress string) string {
	servers := a.client.servers
	if members, err := client.Members(ctx); err == nil {
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

func newMemberPromote(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "promote ID",
		Short:   "Give a learner that has caught up a vote",
		Example: `  conclave member promote 4`,
		Args:    oneArgument("the id of a server"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeMember(cmd, args[0], "has a vote", func(ctx context.Context, client *conclave.Client, id uint64) error {
				return client.PromoteMember(ctx, id)
			})
		},
	}
	a.addJSON(cmd)
	return cmd
}

func newMemberLead(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lead ID",
		Short: "Make a server the leader",
		Long: `Lead hands the leadership of the cluster to a server that votes, and returns once that
server leads. Locks, leaderships of elections and sessions stay as they are; requests
wait for some milliseconds. A server that is not up, or over 100 entries behind, is
refused.`,
		Example: `  conclave member lead 3`,
		Args:    oneArgument("the id of a server"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeMember(cmd, args[0], "leads", func(ctx context.Context, client *conclave.Client, id uint64) error {
				return client.LeadMember(ctx, id)
			})
		},
	}
	a.addJSON(cmd)
	return cmd
}

func newMemberRemove(a *app) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "remove ID",
		Short: "Remove a server for good",
		Long: `Remove takes a server out of the cluster for good; its id is never used again. A
leader hands over first. The server stops, and keeps its data directory. It is
refused if the voters that are left and up would be no quorum.`,
		Example: `  conclave member remove 2
  conclave member remove 2 --json`,
		Args: oneArgument("the id of a server"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeMember(cmd, args[0], "is removed", func(ctx context.Context, client *conclave.Client, id uint64) error {
				return client.RemoveMember(ctx, id, force)
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove it though the voters that are left and up are no quorum")
	a.addJSON(cmd)
	return cmd
}

// changeMember has one server changed and says so.
func (a *app) changeMember(cmd *cobra.Command, argument, done string, change func(context.Context, *conclave.Client, uint64) error) error {
	id, err := strconv.ParseUint(argument, 10, 64)
	if err != nil || id == 0 {
		return fmt.Errorf("%q is not the id of a server: give a number from 1 up", argument)
	}
	return a.ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
		if err := change(ctx, client, id); err != nil {
			return err
		}
		return a.print(map[string]any{"id": id, "done": true}, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "server %d %s\n", id, done)
			return err
		})
	})
}

func oneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return errors.New(cmd.CommandPath() + " takes one argument: " + what)
		}
		return nil
	}
}

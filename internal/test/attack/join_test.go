package attack

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

// joinToken creates a join token with a name. It returns the edit that stores the token.
func (r *ruled) joinToken(name, address string, expires time.Time) *api.AccessEdit {
	edit := r.token(name, expires.UnixNano())
	edit.GetPutToken().Name, edit.GetPutToken().PeerAddress = "", address
	return edit
}

// joining asks a server to accept a new member.
func (r *ruled) joining(client api.ConclaveClient, uid uint64, address string) (uint64, error) {
	answer, err := client.Join(r.within(), &api.JoinRequest{Uid: uid, PeerAddress: address, ClientAddress: "127.0.0.1:9"})
	return answer.GetId(), err
}

// joinByToken uses join tokens of an operator who may change the members and not the rules.
func joinByToken(w *world) {
	const first, second, third = "127.0.0.1:4", "127.0.0.1:5", "127.0.0.1:6"
	r := w.withRules(3)
	r.change(bind("token:dave", "operator"), bind("everyone", "looks"))
	operator, soon := r.as("dave"), time.Now().Add(time.Hour)
	_, err := r.as("victor").Access(r.within(), changing(r.joinToken("x", first, soon)))
	r.expectCode("a viewer makes a join token", err, codes.PermissionDenied)
	stolen := r.joinToken("bob", first, soon)
	_, err = operator.Access(r.within(), changing(stolen))
	r.expectCode("an operator puts a join token in the place of the token of bob", err, codes.PermissionDenied)
	_, err = operator.Access(r.within(), changing(bind("join:*", "admin"), r.joinToken("x", first, soon)))
	r.expectCode("an operator gives a role to join tokens", err, codes.InvalidArgument)
	late := time.Now().Add(6 * time.Second)
	for name, edit := range map[string]*api.AccessEdit{
		"join": r.joinToken("join", first, soon), "gone": r.joinToken("gone", second, soon), "late": r.joinToken("late", third, late),
	} {
		if _, err := operator.Access(r.within(), changing(edit)); err != nil {
			r.Fatalf("an operator makes the join token %s: %v", name, err)
		}
	}
	for id := 1; id <= r.cluster.Servers(); id++ {
		r.onlyJoins(id)
		_, err := r.joining(api.NewConclaveClient(r.with(id, r.tokens["join"])), 9, second)
		r.expectCode(fmt.Sprintf("a join token for another address at server %d", id), err, codes.PermissionDenied)
	}
	newcomer, err := r.joining(r.as("join"), 9, first)
	if err != nil || newcomer != 4 {
		r.Fatalf("a join token lets server %d join: %v", newcomer, err)
	}
	for id := 1; id <= r.cluster.Servers(); id++ {
		client := api.NewConclaveClient(r.with(id, r.tokens["join"]))
		if again, err := r.joining(client, 9, first); err != nil || again != newcomer {
			r.Errorf("the same server asks again and is %d, %v", again, err)
		}
		_, err := r.joining(client, 10, first)
		r.expectCode(fmt.Sprintf("a join token that was used at server %d", id), err, codes.PermissionDenied)
	}
	add := &api.ChangeMembersRequest{Change: &api.ChangeMembersRequest_Add{Add: &api.AddMember{PeerAddress: second}}}
	reserved, err := operator.ChangeMembers(r.within(), add)
	if err != nil {
		r.Fatal(err)
	}
	for _, id := range []uint64{newcomer, reserved.GetId()} {
		remove := &api.ChangeMembersRequest{Change: &api.ChangeMembersRequest_Remove{Remove: &api.RemoveMember{Id: id}}}
		if _, err := operator.ChangeMembers(r.within(), remove); err != nil {
			r.Fatal(err)
		}
	}
	_, err = r.joining(r.as("join"), 9, first)
	r.expectCode("the join token of a server that was removed", err, codes.Unauthenticated)
	_, err = r.joining(r.as("gone"), 11, second)
	r.expectCode("the join token of a server that is not to come any more", err, codes.Unauthenticated)
	servertest.Eventually(r.T, "the last token is late", func() bool { return time.Now().After(late) })
	_, err = r.joining(r.as("late"), 12, third)
	r.expectCode("a join token that has expired", err, codes.Unauthenticated)
	members, err := operator.Members(r.within(), &api.MembersRequest{})
	if err != nil || len(members.GetMembers()) != 3 {
		r.Errorf("the members are %v, %v", members.GetMembers(), err)
	}
}

// onlyJoins tries other requests with a join token. All must be refused.
func (r *ruled) onlyJoins(id int) {
	r.Helper()
	client := api.NewConclaveClient(r.with(id, r.tokens["join"]))
	servertest.Eventually(r.T, "a server that lags knows the token", func() bool {
		_, err := client.Ping(r.within(), &api.PingRequest{})
		return status.Code(err) != codes.Unavailable
	})
	for what, call := range map[string]func(context.Context) error{
		"ping": func(ctx context.Context) error {
			_, err := client.Ping(ctx, &api.PingRequest{})
			return err
		},
		"open a session": func(ctx context.Context) error {
			open := opening(time.Minute)
			open.Session = newSecret()
			_, err := client.Do(ctx, open)
			return err
		},
		"list": func(ctx context.Context) error {
			_, err := client.List(ctx, &api.ListRequest{})
			return err
		},
		"list the members": func(ctx context.Context) error {
			_, err := client.Members(ctx, &api.MembersRequest{})
			return err
		},
		"remove a server": func(ctx context.Context) error {
			_, err := client.ChangeMembers(ctx, &api.ChangeMembersRequest{Change: &api.ChangeMembersRequest_Remove{Remove: &api.RemoveMember{Id: 3}}})
			return err
		},
		"make a join token": func(ctx context.Context) error {
			_, err := client.Access(ctx, changing(r.joinToken("y", "127.0.0.1:7", time.Now().Add(time.Hour))))
			return err
		},
	} {
		r.expectCode(fmt.Sprintf("%s at server %d with a join token", what, id), call(r.within()), codes.PermissionDenied)
	}
}

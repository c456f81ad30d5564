package admin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/embed"
)

// An operator on the machine of a server needs no certificate: the admin socket is enough.
func ExampleNew() {
	ctx := context.Background()
	client, err := conclave.Dial(ctx, conclave.Config{Servers: []string{"unix:/var/lib/conclave/admin.sock"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	members, err := admin.New(client).Members(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range members {
		fmt.Println(m.ID, m.ClientAddress, m.Voter, m.Stage)
	}
}

// Members shows who votes and who leads.
func ExampleAdmin_Members() {
	ctx := context.Background()
	client, err := embed.Open(ctx, embed.Config{}) // or conclave.Dial, of a cluster
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	operator := admin.New(client.Client)

	if err := client.Ready(ctx); err != nil { // otherwise there may be no leader yet
		log.Fatal(err)
	}
	members, err := operator.Members(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range members {
		fmt.Println(m.ID, m.Voter, m.Leader, m.Stage)
	}
	// Output: 1 true true settled
}

// The holder of a lock is asked to leave. It has one TTL for that.
func ExampleAdmin_Revoke() {
	ctx := context.Background()
	client, err := embed.Open(ctx, embed.Config{}) // or conclave.Dial, of a cluster
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	operator := admin.New(client.Client)

	lock, err := client.Lock(ctx, "reports/nightly")
	if err != nil {
		log.Fatal(err)
	}
	fence, err := operator.Revoke(ctx, "reports/nightly", "maintenance")
	fmt.Println(fence == lock.Kept().Fence, err)
	<-lock.Context().Done()
	fmt.Println(context.Cause(lock.Context()))
	lock.Unlock(ctx)

	_, err = operator.Revoke(ctx, "reports/nightly", "again")
	fmt.Println(errors.Is(err, conclave.ErrNotFound))
	// Output:
	// true <nil>
	// the holder was asked to leave: maintenance
	// true
}

// EndSession ends the session of a program that does not answer any more, by the id that Sessions
// shows.
func ExampleAdmin_EndSession() {
	ctx := context.Background()
	client, err := embed.Open(ctx, embed.Config{}) // or conclave.Dial, of a cluster
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	operator := admin.New(client.Client)

	lock, err := client.Lock(ctx, "reports/nightly")
	if err != nil {
		log.Fatal(err)
	}
	sessions, err := operator.Sessions(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range sessions {
		holds, err := operator.EndSession(ctx, s.ID, "it hangs")
		fmt.Println(holds, "hold", err)
	}
	<-lock.Context().Done()
	// Output: 1 hold <nil>
}

// A change of the rules is made for the revision that was read: if somebody else changes them
// meanwhile, it fails with ErrConflict. DryRun shows what it would do.
func ExampleAdmin_ChangeAccess() {
	ctx := context.Background()
	client, err := conclave.Dial(ctx, conclave.Config{Servers: []string{"unix:/var/lib/conclave/admin.sock"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	operator := admin.New(client)

	rules, err := operator.Access(ctx)
	if err != nil {
		log.Fatal(err)
	}
	token, put, id := admin.NewToken("reporter", time.Now().Add(90*24*time.Hour), "the nightly reports")
	changed, err := operator.ChangeAccess(ctx, admin.AccessChange{
		Edits: []admin.AccessEdit{
			admin.PutRole(admin.Role{Name: "reports", Rules: []string{`allow read,hold on prefix "reports/"`}}),
			admin.PutBinding(admin.Binding{Who: "token:reporter", Roles: []string{"reports"}}),
			put,
		},
		Expected: rules.Revision,
	})
	switch {
	case errors.Is(err, admin.ErrConflict):
		log.Fatal("somebody else has changed the rules: read them again")
	case err != nil:
		log.Fatal(err)
	}
	fmt.Println("token", id, "is valid from revision", changed.Revision)
	_ = token // for the program that is to use it, as conclave.Config.Token
}

// SetGuard lets an algorithm guard all locks with a prefix.
func ExampleAdmin_SetGuard() {
	ctx := context.Background()
	client, err := conclave.Dial(ctx, conclave.Config{Servers: []string{"unix:/var/lib/conclave/admin.sock"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	operator := admin.New(client)

	use := admin.Use{Algorithm: "suzuki-kasami"}
	if err := operator.SetGuard(ctx, "cache/", use, admin.CancelAfter(time.Minute)); err != nil {
		log.Fatal(err)
	}
	view, err := operator.View(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, g := range view.Guards {
		fmt.Println(g.Prefix, g.Use.Algorithm, "changes:", g.Change != nil)
	}
}

// The audit log has who did what.
func ExampleAdmin_AuditLog() {
	ctx := context.Background()
	client, err := conclave.Dial(ctx, conclave.Config{Servers: []string{"unix:/var/lib/conclave/admin.sock"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	records, err := admin.New(client).AuditLog(ctx, admin.AuditQuery{Kind: "revoke", Since: time.Now().Add(-24 * time.Hour)})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range records {
		fmt.Println(r.Time, r.Actor, r.Target.Name, r.Reason, r.Result)
	}
}

// A backup is a file of which `conclave snapshot restore` makes a new cluster.
func ExampleAdmin_Backup() {
	ctx := context.Background()
	client, err := embed.Open(ctx, embed.Config{}) // or conclave.Dial, of a cluster
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	operator := admin.New(client.Client)

	if err := client.Ready(ctx); err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	err = operator.Backup(ctx, &file)
	fmt.Println(file.Len() > 0, err)
	// Output: true <nil>
}

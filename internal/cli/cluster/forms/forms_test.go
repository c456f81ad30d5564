package forms

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/api"
)

// TestForms compares forms with those over HTTP, and shows the fields that only the command line has.
func TestForms(t *testing.T) {
	const session = "s-000102030405060708090a0b0c0d0e0f"
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	holder := conclave.Holder{
		Session: session, Owner: "cert:a", Sequence: 1 << 60, Fence: 2, Since: at, Host: "h", PID: 3, Program: "p", Value: []byte("v"),
		Shared: true, Priority: 4, Revoked: true, Reason: "r",
	}
	waiter := conclave.Waiter{Session: session, Sequence: 5, Since: at, Host: "h", PID: 3, Program: "p", Value: []byte{0xff}}
	lock := conclave.Resource{Name: "a", Limit: 1, Holders: []conclave.Holder{holder}, Waiters: []conclave.Waiter{waiter}, QueueLength: 1}
	const (
		holderText = `{"session_id":"s-000102030405060708090a0b0c0d0e0f","owner":"cert:a","hold":"1152921504606846976","fence":"2","since":"2026-11-22T12:00:00Z","host":"h","pid":3,"program":"p","value":"v","shared":true,"priority":4,"revoked":true,"reason":"r"}`
		waiterText = `{"session_id":"s-000102030405060708090a0b0c0d0e0f","since":"2026-11-22T12:00:00Z","host":"h","pid":3,"program":"p","value_base64":"/w==","hold":"5"}`
		lockText   = `{"name":"a","limit":1,"holders":[` + holderText + `],"queue_length":1,"waiters":[` + waiterText + `]}`
	)
	for _, test := range []struct {
		form any
		want string
	}{
		{HolderOf(holder), holderText},
		{ResourceOf(lock), lockText},
		{ElectionOf(conclave.Observation{Name: "e", Elected: true, Leader: holder}), `{"name":"e","elected":true,"leader":` + holderText + `}`},
		{
			ExplanationOf("a", conclave.Explanation{
				Held: true, Resource: lock, Algorithm: "raymond", Prefix: "r/", Homes: []conclave.AtHome{{Server: 1, Held: true}},
				Past: []conclave.Ended{{Fence: 1, Since: at, Until: at, How: "released"}},
			}, "", []Waiting{}),
			`{"name":"a","past":[{"fence":"1","since":"2026-11-22T12:00:00Z","until":"2026-11-22T12:00:00Z","host":"","pid":0,"program":"","how":"released"}],` +
				`"guard":{"prefix":"r/","algorithm":"raymond"},"homes":[{"server":1,"held":true,"queue_length":0}],"held":` + lockText + `,"waits":[]}`,
		},
		{
			WaitingOf(conclave.Waiting{Waiter: waiter, Name: "a", Holders: []conclave.Holder{holder}, HolderCount: 1, Keeps: []conclave.Kept{{Name: "e", Election: true, Fence: 6}}}),
			`{"lock":"a","holders":[` + holderText + `],"holder_count":1,"keeps":[{"election":"e","fence":"6"}],"waiter":` + waiterText + `}`,
		},
		{
			SessionOf(admin.SessionInfo{ID: session, TTL: 10 * time.Second, Opened: at, Host: "h", PID: 3, Program: "p", Holds: 1}),
			`{"session_id":"s-000102030405060708090a0b0c0d0e0f","ttl":"10s","opened":"2026-11-22T12:00:00Z","host":"h","pid":3,"program":"p","holds":1,"waits":0}`,
		},
		{
			StatusOf(&api.StatusResponse{Server: 1, Fence: 7, UptimeNs: 1.5e9, StateBytes: 8, Level: 4, Members: []*api.Member{{Id: 1, CertificateExpiresUnixNs: at.UnixNano()}}}, nil),
			`{"cluster":"","server":1,"leader":0,"term":"0","commit_index":"0","applied_index":"0","snapshot_index":"0","sessions":0,"locks":0,"elections":0,` +
				`"waiters":0,"fence":"7","version":"","uptime":"1.5s","state_bytes":8,"state_limit_bytes":0,"level":4,"clocks":[],` +
				`"members":[{"id":1,"peer_address":"","client_address":"","voter":false,"leader":false,"connected":false,"match_index":"0",` +
				`"learner":false,"behind":"0","stage":"settled","certificate_expires":"2026-11-22T12:00:00Z"}]}`,
		},
		{
			ViewOf(admin.View{Epoch: 1, Members: []admin.Seat{{ID: session, Server: 1, Home: &admin.Home{State: "OPEN"}}}, Guards: []admin.Guard{{Prefix: "r/", Change: &admin.GuardChange{Wait: time.Second}}}}),
			`{"epoch":1,"coordinator":0,"members":[{"id":"s-000102030405060708090a0b0c0d0e0f","server":1,"client_address":"","home":` +
				`{"seat":"s-000102030405060708090a0b0c0d0e0f","epoch":0,"state":"OPEN","remaining":"0s","sessions":0,"names":0,"lanes":[],"paused":"0s","namespaces":[],"starts":[]}}],` +
				`"others":[],"guards":[{"prefix":"r/","algorithm":"agreement","change":{"algorithm":"agreement","wait":"1s"}}]}`,
		},
		{
			AccessChangedOf("done", admin.AccessChanged{Revision: 2, Denied: 1, Holds: []admin.DeniedHold{{Name: "a", Fence: 3, Session: session}}}, 1),
			`{"done":"done","revision":"2","denied":"1","denied_holds":[{"class":"lock","name":"a","fence":"3","session_id":"s-000102030405060708090a0b0c0d0e0f"}],"revoked":1}`,
		},
	} {
		text, err := json.Marshal(test.form)
		if err != nil || string(text) != test.want {
			t.Errorf("got\n%s, want\n%s, %v", text, test.want, err)
		}
	}
}

package attack

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/conclave-io/conclave/api"
)

// searchForSecrets uses sessions in every possible way, and then searches everything that servers
// store or send for the secrets of the sessions. It must find the public ids of these sessions.
// Otherwise the search would prove nothing.
func searchForSecrets(w *world) {
	secrets, ids := w.busySessions()
	found := w.everything()
	for place, content := range found {
		for i, secret := range secrets {
			for _, form := range formsOf(secret) {
				if bytes.Contains(content, form) {
					w.Errorf("%s has the secret of session %d as %.40q", place, i, form)
				}
			}
		}
	}
	for _, place := range []string{"log of server 1", "log of server 2", "log of server 3", "backup", "lists", "JSON", "messages"} {
		for i, id := range ids {
			if !slices.ContainsFunc(formsOf(id), func(form []byte) bool { return bytes.Contains(found[place], form) }) {
				w.Errorf("%s (%d bytes) does not have the id of session %d", place, len(found[place]), i)
			}
		}
	}
}

// formsOf returns the encodings in which 16 bytes may occur.
func formsOf(b []byte) [][]byte {
	return [][]byte{b, []byte(hexOf(b)), []byte(strings.ToUpper(hexOf(b))), []byte(base64.StdEncoding.EncodeToString(b)), fmt.Appendf(nil, "%v", b)}
}

// busySessions returns the secrets and ids of sessions that hold a lock each. They are opened over
// a stream, and by single calls over gRPC and HTTP to every server. Each session is also used in a
// way that servers log.
func (w *world) busySessions() (secrets, ids [][]byte) {
	lock := func() string { return fmt.Sprintf("%slock-%d", w.prefix, len(secrets)) }
	s := w.attach(nil, newSecret()).open(time.Minute)
	s.expect(s.send(acquiring(lock())), api.Code_CODE_OK)
	secrets, ids = append(secrets, s.secret), append(ids, s.id)
	for id := 1; id <= w.cluster.Servers(); id++ {
		client, _ := w.dial(id, nil)
		secret := newSecret()
		opened := w.must(client, secret, opening(time.Minute))
		w.must(client, secret, acquiring(lock()))
		w.do(client, secret, acquiring(""))
		w.do(client, secret, releasing(1))
		w.do(client, append(slices.Clone(secret), 0), renewal())
		secrets, ids = append(secrets, secret), append(ids, opened.GetId())

		secret = newSecret()
		answer := w.object(id, nil, "POST", "/v1/open", fmt.Sprintf(`{"session":"%x"}`, secret))
		public, _ := answer["session_id"].(string)
		var raw []byte
		if _, err := fmt.Sscanf(public, "s-%x", &raw); err != nil {
			w.Fatalf("open is answered with %v", answer)
		}
		w.object(id, nil, "POST", "/v1/acquire", fmt.Sprintf(`{"session":"%x","name":%q}`, secret, lock()))
		w.object(id, nil, "POST", "/v1/acquire", fmt.Sprintf(`{"session":"%x","name":%q,"wait":"10ms"}`, secret, lock()[:len(lock())-1]+"0"))
		w.object(id, nil, "POST", "/v1/renew", fmt.Sprintf(`{"session":"%x0"}`, secret))
		secrets, ids = append(secrets, secret), append(ids, raw)
	}
	return secrets, ids
}

// everything returns what the servers store and send. The keys say where it was found.
func (w *world) everything() map[string][]byte {
	w.Helper()
	found := make(map[string][]byte)
	client, _ := w.dial(w.cluster.Leader(), nil)
	collect := func(place string, m proto.Message, err error) {
		if err != nil {
			w.Fatalf("%s: %v", place, err)
		}
		raw, err := proto.Marshal(m)
		if err != nil {
			w.Fatal(err)
		}
		found[place] = append(append(found[place], raw...), m.(fmt.Stringer).String()...)
	}
	locks, err := client.List(w.within(), &api.ListRequest{Prefix: w.prefix, Waiters: 100})
	collect("lists", locks, err)
	sessions, err := client.Sessions(w.within(), &api.SessionsRequest{})
	collect("lists", sessions, err)
	for _, r := range locks.GetResources() {
		why, err := client.Explain(w.within(), &api.ExplainRequest{Name: r.GetName()})
		collect("explanations", why, err)
	}
	watch, err := client.Watch(w.within(), &api.WatchRequest{Prefix: w.prefix})
	if err != nil {
		w.Fatal(err)
	}
	changes, err := watch.Recv()
	collect("watch", changes, err)

	stranger := newSecret()
	w.must(client, stranger, opening(time.Minute))
	for _, r := range locks.GetResources() {
		reply := w.do(client, stranger, &api.Request{Op: &api.Request_Acquire{Acquire: &api.Acquire{Name: r.GetName(), Try: true}}})
		reply.Session = nil // the session of the attacker
		collect("messages", reply, nil)
	}
	backup, err := client.Backup(w.within(), &api.BackupRequest{})
	for err == nil {
		var chunk *api.BackupChunk
		if chunk, err = backup.Recv(); err == nil {
			found["backup"] = append(found["backup"], chunk.GetData()...)
		}
	}
	if err != io.EOF {
		w.Fatal(err)
	}
	for id := 1; id <= w.cluster.Servers(); id++ {
		for _, path := range []string{"/", "/metrics", "/v1/status", "/v1/members", "/v1/locks", "/v1/sessions", "/v1/elections"} {
			_, body := w.page(id, nil, "GET", path, "")
			place := path
			if strings.HasPrefix(path, "/v1/locks") || strings.HasPrefix(path, "/v1/sessions") {
				place = "JSON"
			}
			found[place] = append(found[place], body...)
		}
		w.files(id, found)
	}
	found["debug log"] = []byte(w.log.String())
	return found
}

// files reads all files of a server. An acknowledged write is on the disks of a majority at once,
// and on the others soon. So files first waits until the server has applied all committed entries.
func (w *world) files(id int, found map[string][]byte) {
	w.Helper()
	client, _ := w.dial(id, nil)
	leader, _ := w.dial(w.cluster.Leader(), nil)
	want, err := leader.Status(w.within(), &api.StatusRequest{})
	if err != nil {
		w.Fatal(err)
	}
	for applied := uint64(0); applied < want.GetCommitIndex(); {
		now, err := client.Status(w.within(), &api.StatusRequest{})
		if err != nil {
			w.Fatal(err)
		}
		applied = now.GetAppliedIndex()
	}
	root := w.cluster.Config(id).Data
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		place := fmt.Sprintf("log of server %d", id)
		found[place] = append(found[place], content...)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
}

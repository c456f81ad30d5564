package attack

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

func init() {
	attacks = append(attacks, attack{
		number: 40, what: "come back as an administrator by a backup from before one's removal", expected: "restore names all who may change the rules; it is on record; --without-access starts without rules",
		apart: true, run: returnByABackup,
	})
}

func returnByABackup(w *world) {
	r := w.withRules(1)
	r.change(bind("token:dave", "admin"))
	file := filepath.Join(w.TempDir(), "backup")
	r.backUp(file)
	r.change(bind("token:dave", "viewer"))

	binary := filepath.Join(w.TempDir(), "conclave")
	if said, err := exec.Command("go", "build", "-o", binary, "github.com/conclave-io/conclave/cmd/conclave").CombinedOutput(); err != nil {
		w.Fatalf("%v: %s", err, said)
	}
	for _, without := range []bool{false, true} {
		data := filepath.Join(w.TempDir(), "data")
		args := []string{"snapshot", "restore", file, "--data", data}
		if without {
			args = append(args, "--without-access")
		}
		said, err := exec.Command(binary, args...).CombinedOutput()
		if err != nil {
			w.Fatalf("%v: %s", err, said)
		}
		if named := strings.Contains(string(said), "administrators: ") && strings.Contains(string(said), "token:dave"); named == without {
			w.Errorf("restore with %q says %q", args, said)
		}
		again := servertest.Start(w.T, 1, func(cfg *config.Server) { cfg.Data = data })
		operator, err := conclave.Dial(w.within(), conclave.Config{Servers: []string{"unix:" + filepath.Join(data, "admin.sock")}})
		if err != nil {
			w.Fatal(err)
		}
		rules, err := admin.New(operator).Access(w.within())
		if err != nil || (rules.Mode == "closed") == without || (len(rules.Tokens) == 0) != without {
			w.Errorf("after a restore with %q the rules are %+v, %v", args, rules, err)
		}
		records, err := admin.New(operator).AuditLog(w.within(), admin.AuditQuery{})
		if err != nil || !slices.ContainsFunc(records, func(rec admin.AuditRecord) bool { return rec.Kind == "restore" }) {
			w.Errorf("on record are %v, %v", records, err)
		}
		if err := operator.Close(); err != nil {
			w.Error(err)
		}
		again.Stop(1)
	}
}

// backUp saves a backup of the cluster to a file.
func (r *ruled) backUp(path string) {
	r.Helper()
	stream, err := r.admin.Backup(r.within(), &api.BackupRequest{})
	if err != nil {
		r.Fatal(err)
	}
	var content []byte
	for {
		chunk, err := stream.Recv()
		if err != nil {
			break // restore refuses an incomplete file
		}
		content = append(content, chunk.GetData()...)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		r.Fatal(err)
	}
}

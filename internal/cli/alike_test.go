package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
	"github.com/conclave-io/conclave/internal/service/version"
)

// The composed and the decomposed form of a name are two locks. It could not be seen which is which.
func TestNamesThatLookAlike(t *testing.T) {
	const composed, decomposed = "caf\u00e9", "cafe\u0301"
	server := oneServer(t)[1]
	client, err := conclave.Dial(t.Context(), conclave.Config{Servers: []string{server}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, name := range []string{composed, decomposed} {
		if _, err := client.TryLock(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	status, printed, said := inProcess("locks", "--servers", server)
	if status != 0 || !strings.Contains(printed, "\n"+composed+" ") || !strings.Contains(printed, "\n\"cafe\\u0301\" ") {
		t.Errorf("status %d, %s", status, printed)
	}
	if want := "conclave: \"cafe\\u0301\" and \"café\" look alike, and are different locks\n"; said != want {
		t.Errorf("%q, want %q", said, want)
	}
	for name, want := range map[string][2]string{
		composed:   {`lock "café" is held by 1`, "\n\"cafe\\u0301\" looks the same, and is another lock: held by 1, 0 waiting\n"},
		decomposed: {`lock "cafe\u0301" is held by 1`, "\n\"café\" looks the same, and is another lock: held by 1, 0 waiting\n"},
	} {
		if status, printed, _ := inProcess("why", name, "--servers", server); status != 0 || !strings.HasPrefix(printed, want[0]) || !strings.HasSuffix(printed, want[1]) {
			t.Errorf("status %d, %s", status, printed)
		}
	}
}

// With names = nfc a new name in the other form is refused. What is held stays, and can be revoked.
func TestSettings(t *testing.T) {
	const composed, decomposed = "caf\u00e9", "cafe\u0301"
	server := oneServer(t)[1]
	client, err := conclave.Dial(t.Context(), conclave.Config{Servers: []string{server}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	servertest.Eventually(t, "the level is the newest", func() bool {
		u, err := admin.New(client).Upgrade(t.Context())
		return err == nil && u.Level == version.Max
	})
	if _, err := client.TryLock(t.Context(), decomposed); err != nil {
		t.Fatal(err)
	}
	const table = "NAME   VALUE  VALUES    MEANING\nnames  %s    any, nfc  in which Unicode form a name must be that is locked, campaigned for or guarded: any, or only nfc\n"
	const refusal = "name: \"cafe\\u0301\": is not in the Unicode form NFC; use \"café\", or see conclave settings"
	for _, step := range []struct {
		args          []string
		status        int
		printed, said string
	}{
		{[]string{"settings"}, 0, fmt.Sprintf(table, "any"), ""},
		{[]string{"settings", "set", "names", "nfc"}, 0, fmt.Sprintf(table, "nfc"), "conclave: names in use that are not in the form NFC, which stay: 1: lock \"cafe\\u0301\"\n"},
		{[]string{"lock", decomposed + "x", "--try", "--", "true"}, 125, "", "conclave: lock \"" + decomposed + "x\": " + strings.ReplaceAll(strings.ReplaceAll(refusal, "u0301", "u0301x"), "café", "caféx") + " (invalid)\n"},
		{[]string{"lock", composed, "--try", "--", "true"}, 0, "", ""},
		{[]string{"release", decomposed, "--force", "--reason", "test"}, 0, "", ""},
		{[]string{"settings", "set", "names", "any"}, 0, fmt.Sprintf(table, "any"), ""},
		{[]string{"lock", decomposed + "x", "--try", "--", "true"}, 0, "", ""},
	} {
		args := append([]string{step.args[0], "--servers", server}, step.args[1:]...)
		status, printed, said := inProcess(args...)
		if status != step.status || step.printed != "" && printed != step.printed || step.said != "" && said != step.said {
			t.Errorf("%q: status %d, %q, %q; want %d, %q, %q", step.args, status, printed, said, step.status, step.printed, step.said)
		}
	}
}

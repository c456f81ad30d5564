package cli

import (
	"strings"
	"testing"

	"github.com/conclave-io/conclave"
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

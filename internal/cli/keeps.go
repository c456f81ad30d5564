package cli

import (
	"os"
	"strings"

	"github.com/conclave-io/conclave"
)

// keepsVar is the environment variable with the holds under which a command runs. The servers need
// them to detect that a lock it waits for would complete a deadlock.
const keepsVar = "CONCLAVE_KEEPS"

// inherit reads the holds under which this process runs. It ignores malformed entries: the only
// effect is that a deadlock may not be detected.
func (a *app) inherit() {
	for _, text := range strings.Fields(os.Getenv(keepsVar)) {
		var k conclave.Kept
		if err := k.UnmarshalText([]byte(text)); err != nil {
			a.say("%s: ignored: %s", keepsVar, oneLine(err.Error()))
			continue
		}
		a.keeps = append(a.keeps, k)
	}
}

func keepsText(holds []conclave.Kept) string {
	var texts []string
	for _, k := range holds[max(0, len(holds)-conclave.MaxKeeps):] {
		text, _ := k.MarshalText() // it never fails
		texts = append(texts, string(text))
	}
	return strings.Join(texts, " ")
}

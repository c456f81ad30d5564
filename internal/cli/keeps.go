package cli

import (
	"os"
	"strings"

	"github.com/conclave-io/conclave"
)

// keepsVar is the variable by which a command knows the holds that it runs under, so that
// a lock which it waits for cannot complete a deadlock unnoticed.
const keepsVar = "CONCLAVE_KEEPS"

// inherit notes the holds that this process runs under. What cannot be read is ignored: a
// deadlock may then go unnoticed, no more.
func (a *app) inherit() {
	for _, text := range strings.Fields(os.Getenv(keepsVar)) {
		var k conclave.Kept
		if err := k.UnmarshalText([]byte(text)); err != nil {
			a.say("%s is ignored: %v", keepsVar, err)
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

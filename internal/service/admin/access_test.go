package admin

import (
	"testing"

	"github.com/conclave-io/conclave/api"
)

// An unknown class is refused, and not truncated to its last 8 bits.
func TestCheckOfAnUnknownClass(t *testing.T) {
	for class, known := range map[api.Class]bool{0: true, 1: true, 2: false, 256: false, -1: false} {
		if _, err := answerCheck(&api.CheckAccess{Verb: "hold", Class: class, Name: "a"}); (err == nil) != known {
			t.Errorf("class %d: %v", class, err)
		}
	}
}

package measure

import (
	"fmt"
	"testing"
)

// One coordinator makes the difference: if 2m-n-1 coordinators forget, the second client
// never enters, and if 2m-n forget, it always does. It does not matter which ones they
// are.
func TestResetsNeeded(t *testing.T) {
	for _, v := range Votes {
		n, m := v[0], v[1]
		t.Run(fmt.Sprintf("n=%d,m=%d", n, m), func(t *testing.T) {
			for seed := range uint64(20) {
				for count := 2*m - n - 1; count <= 2*m-n; count++ {
					forgets := make([]bool, m)
					for i := range count {
						forgets[(i+int(seed))%m] = true
					}
					broken, err := resetTrial(n, m, forgets, seed)
					if err != nil {
						t.Fatal(err)
					}
					if want := count == 2*m-n; broken != want {
						t.Errorf("seed %d, %d forget: two inside is %v, want %v", seed, count, broken, want)
					}
				}
			}
		})
	}
}

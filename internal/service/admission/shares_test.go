package admission

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/conclave-io/conclave/api"
)

// A principal has at most its share of pending work, whatever others have. Nothing is
// stored about principals without any.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s shares
		has := make(map[string]*[parts]int)
		for range rapid.IntRange(0, 3000).Draw(t, "steps") {
			who := rapid.SampledFrom([]string{"cert:a", "cert:b"}).Draw(t, "who")
			p := rapid.SampledFrom([]part{aStream, aStream, aWatch, aCall}).Draw(t, "part")
			if has[who] == nil {
				has[who] = new([parts]int)
			}
			if rapid.IntRange(0, 5).Draw(t, "leave") == 0 && has[who][p] > 0 {
				s.leave(who, p)
				has[who][p]--
				continue
			}
			took := s.take(who, p)
			if took != (has[who][p] < partMost[p]) {
				t.Fatalf("with %v %s takes one more: %v", *has[who], who, took)
			}
			if took {
				has[who][p]++
			}
		}
		for who, all := range has {
			for p, n := range all {
				for range n {
					s.leave(who, part(p))
				}
			}
		}
		if len(s.of) > 0 {
			t.Fatalf("of those who left there are %v", s.of)
		}
	})
	err := error(&shareError{"cert:a", aStream, 3})
	if got := "cert:a has 256 of 256 streams at server 3: end some"; err.Error() != got || status.Code(err) != codes.ResourceExhausted || api.CodeOf(err) != api.Code_CODE_QUOTA {
		t.Errorf("%v, %v, %v", err, status.Code(err), api.CodeOf(err))
	}
}

// Every kind of call takes its share.
func TestPartOf(t *testing.T) {
	for method, want := range map[string]part{"Attach": aStream, "AttachHome": aStream, "Watch": aWatch, "Observe": aWatch, "AuditLog": aWatch, "Do": aCall, "Backup": aCall} {
		if got := partOf(method); got != want {
			t.Errorf("%s takes one of the %s", method, partNames[got])
		}
	}
	for pattern := range routes() {
		want := map[bool]part{true: aWatch, false: aCall}[pattern == "GET /v1/watch" || pattern == "GET /v1/watch/locks" || pattern == "GET /v1/watch/elections" || pattern == "GET /v1/elections/{name}/watch"]
		if got := partOfRoute(pattern); got != want {
			t.Errorf("%s takes one of the %s", pattern, partNames[got])
		}
	}
}

package admission

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/conclave-io/conclave/api"
)

// At any rate, at most the requests of two seconds are accepted within one second: those
// of that second and those saved up. A principal that sends less than its rate is never
// refused.
func TestRates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, most := new(rates), rapid.Uint64Range(1, 50).Draw(t, "most")
		now, taken := int64(1), []int64{}
		for range rapid.IntRange(1, 300).Draw(t, "requests") {
			now += rapid.Int64Range(0, int64(time.Second)/5).Draw(t, "pause")
			if rapid.Bool().Draw(t, "another") {
				r.take("cert:b", most, now)
			}
			if r.take("cert:a", most, now) {
				taken = append(taken, now)
			}
		}
		for i, since := range taken {
			for n, at := range taken[i:] {
				if allowed := 2 + float64(most)*(1+float64(at-since)/1e9); float64(n+1) > allowed {
					t.Fatalf("%d requests in %d ns at %d per second", n+1, at-since, most)
				}
			}
		}
		for range 3 * most {
			now += int64(time.Second)/int64(most) + int64(time.Second)
			if !r.take("cert:a", most, now) {
				t.Fatal("a slow one is refused")
			}
		}
	})
}

// Principals that are silent take no room.
func TestRatesForget(t *testing.T) {
	r := new(rates)
	for i := range 5 * mostRates {
		if !r.take(string(rune('a'+i)), 10, int64(i)*int64(time.Second)) {
			t.Fatal("refused")
		}
	}
	if len(r.due) > mostRates {
		t.Errorf("%d are remembered", len(r.due))
	}
}

func TestWhatCounts(t *testing.T) {
	acquire, renew := &api.Request{Op: &api.Request_Acquire{}}, &api.Request{Op: &api.Request_Renew{}}
	for _, c := range []struct {
		method string
		req    any
		want   bool
	}{
		{"Attach", nil, false}, {"AttachHome", nil, false}, {"Ping", nil, false}, {"Watch", nil, true}, {"List", nil, true}, {"Do", acquire, true}, {"Do", renew, false},
	} {
		if got := counted(c.method, c.req); got != c.want {
			t.Errorf("%s counts: %v", c.method, got)
		}
	}
	free := 0
	for pattern := range routes() {
		if !countedRoute(pattern) {
			free++
		}
	}
	if free != 4 {
		t.Errorf("%d routes do not count", free)
	}
	err := error(&rateError{"cert:a", 7, 3})
	if got := "cert:a sends more than 7 requests per second to server 3: send fewer, or have the quota raised"; err.Error() != got || status.Code(err) != codes.ResourceExhausted || api.CodeOf(err) != api.Code_CODE_QUOTA {
		t.Errorf("%v, %v, %v", err, status.Code(err), api.CodeOf(err))
	}
}

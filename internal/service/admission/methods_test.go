package admission

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/rest"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// TestEveryCallHasANeed: every call has a verb that it needs, and a call without one is
// refused.
func TestEveryCallHasANeed(t *testing.T) {
	var offered []string
	for _, m := range api.Conclave_ServiceDesc.Methods {
		offered = append(offered, m.MethodName)
	}
	for _, m := range api.Conclave_ServiceDesc.Streams {
		offered = append(offered, m.StreamName)
	}
	slices.Sort(offered)
	if diff := cmp.Diff(offered, slices.Sorted(maps.Keys(methods))); diff != "" {
		t.Errorf("methods that are served (-) and in the table (+) differ:\n%s", diff)
	}
	var free []string
	for pattern, wanted := range routes() {
		switch wanted.Kind {
		case access.NeedNothing:
			free = append(free, pattern)
		case access.NeedUnmapped:
			t.Errorf("%s needs nothing that is known", pattern)
		}
	}
	if slices.Sort(free); !slices.Equal(free, []string{"GET /healthz", "GET /readyz"}) {
		t.Errorf("without a proof anybody may call %v", free)
	}
	for name, wanted := range methods {
		if wanted.Kind == access.NeedUnmapped || wanted.Kind == access.NeedNothing {
			t.Errorf("%s needs %v", name, wanted)
		}
	}
	if err := new(Gate).Permit(t.Context(), stream.Caller{Principal: "cert:alice"}, needOf("Dance", nil)); err == nil {
		t.Error("a call that is not in the table is permitted")
	}
}

// routes returns the patterns of the calls over HTTP, and what they need.
func routes() map[string]access.Need {
	none := http.NotFoundHandler()
	return rest.New(nil, rest.Config{Healthz: none, Readyz: none, Metrics: none}).Needs()
}

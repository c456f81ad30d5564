package api_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/conclave-io/conclave/api"
)

// The table is fixed since the first release: numbers and names that programs may have
// stored never change.
func TestEveryCodeHasItsMeaning(t *testing.T) {
	for number, name := range api.Code_name {
		m := api.MeaningOf(api.Code(number))
		if want := strings.TrimPrefix(name, "CODE_"); m.Name != want {
			t.Errorf("code %d is called %q, want %q", number, m.Name, want)
		}
		if m.HTTP < 200 || m.HTTP > 599 {
			t.Errorf("%s has the HTTP status %d", name, m.HTTP)
		}
		success := number == int32(api.Code_CODE_OK)
		if m.HTTP == 200 != success {
			t.Errorf("%s has the HTTP status %d", name, m.HTTP)
		}
		if number != 0 && m.GRPC == codes.Unknown {
			t.Errorf("%s has no entry in the table", name)
		}
	}
}

func TestCodeOfANewerServer(t *testing.T) {
	m := api.MeaningOf(api.Code(9999))
	if m.Name != "9999" || m.HTTP != 500 {
		t.Errorf("an unknown code means %+v", m)
	}
}

package embed

import (
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// A program can set whatever a server has to set, but for what Config sets itself: Data is
// Config.Dir, a logger that is given has its own level and format, and IOTimeout is for tests.
func TestMemberHasAllSettings(t *testing.T) {
	var m Member
	fill(t, reflect.ValueOf(&m).Elem())
	settings := m.server("dir")
	elsewhere(t, settings, "LogLevel", "LogFormat", "IOTimeout")
	// Of the limits, the server sets the others itself.
	elsewhere(t, settings.Limits, "ID", "UID", "PeerAddress", "ClientAddress", "Founders", "Tick", "HeartbeatTicks", "ElectionTicks",
		"Stagger", "StateLimit", "Levels", "Audits", "Log")
}

// elsewhere complains about fields that are zero and not listed, or listed and not zero.
func elsewhere[Settings config.Server | replica.Config](t *testing.T, settings Settings, listed ...string) {
	v := reflect.ValueOf(settings)
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.IsExported() && v.Field(i).IsZero() != slices.Contains(listed, field.Name) {
			t.Errorf("%v: %s is %v", v.Type(), field.Name, v.Field(i))
		}
	}
}

// fill sets all fields to something.
func fill(t *testing.T, v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int64:
			f.SetInt(1)
		case reflect.Uint64:
			f.SetUint(1)
		case reflect.Struct:
			fill(t, f)
		default:
			for _, value := range []any{slog.Default(), http.NewServeMux(), &net.TCPListener{}} {
				if reflect.TypeOf(value).AssignableTo(f.Type()) {
					f.Set(reflect.ValueOf(value))
				}
			}
			if f.IsZero() {
				t.Errorf("%s has no value", v.Type().Field(i).Name)
			}
		}
	}
}

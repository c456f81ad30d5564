package admin

import (
	"context"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client"
)

// Settings are what operators have chosen for the whole cluster.
type Settings struct {
	Settings []Setting // by name
	// Revision grows with each change; it is 0 if there was none.
	Revision uint64
	// OtherForms is how many names in use are in another form than the one that was just demanded of new
	// names, and Others are at most 10 of them, by name, that the caller may read.
	OtherForms uint64
	Others     []NameInUse
}

// Setting is a setting with its value. Values are the possible ones, the default first.
type Setting struct {
	Name   string
	Value  string
	Values []string
	Text   string // what it decides
}

// NameInUse is the name of a "lock" or an "election", or the prefix of a "guard".
type NameInUse struct{ Kind, Name string }

// Settings returns the settings of the cluster.
func (a *Admin) Settings(ctx context.Context) (Settings, error) {
	return a.settings(ctx, &api.SettingsRequest{})
}

// Set changes a setting of the cluster. When it returns, all servers act by it.
//
// With names set to "nfc", servers refuse requests for new names that are not in the Unicode normalization
// form C: to acquire, to campaign, and to guard a prefix. What has such a name stays, and can be released,
// revoked and removed.
func (a *Admin) Set(ctx context.Context, name, value string) (Settings, error) {
	return a.settings(ctx, &api.SettingsRequest{Name: name, Value: value})
}

func (a *Admin) settings(ctx context.Context, req *api.SettingsRequest) (Settings, error) {
	answer, err := call(ctx, a, "settings", api.ConclaveClient.Settings, req)
	return Settings{
		Settings: client.Each(answer.GetSettings(), func(s *api.Setting) Setting {
			return Setting{s.GetName(), s.GetValue(), s.GetValues(), s.GetText()}
		}),
		Revision: answer.GetRevision(), OtherForms: answer.GetOtherForms(),
		Others: client.Each(answer.GetOthers(), func(n *api.NameInUse) NameInUse { return NameInUse{n.GetKind(), n.GetName()} }),
	}, err
}

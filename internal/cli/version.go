package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Long:  "With --json, the output also has the revision of the source.",
		Example: `  conclave version
  conclave --version
  conclave version --json`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			return a.printLine(v, v.text())
		},
	})
}

type versionView struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func (v versionView) text() string {
	return fmt.Sprintf("conclave %s (%s, %s/%s)", v.Version, v.Go, v.OS, v.Arch)
}

// readVersion returns what the Go tool has recorded in the binary.
func readVersion() versionView {
	v := versionView{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

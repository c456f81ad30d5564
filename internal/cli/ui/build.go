package ui

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Build describes the binary.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// Text returns the version in one line.
func (v Build) Text() string {
	return fmt.Sprintf("conclave %s (%s, %s/%s)", v.Version, v.Go, v.OS, v.Arch)
}

// ReadBuild returns what the Go tool has recorded in the binary.
func ReadBuild() Build {
	v := Build{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
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

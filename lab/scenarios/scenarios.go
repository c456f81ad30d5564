// Package scenarios has the scenario files of this repository, for programs that show
// them.
package scenarios

import "embed"

// Files are the scenario files, by their paths below this folder.
//
//go:embed *.yaml */*.yaml
var Files embed.FS

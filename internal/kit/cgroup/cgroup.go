// Package cgroup finds the control groups of this process on Linux, and how much memory they allow.
package cgroup

import (
	"io/fs"
	"math"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Dir returns the directory of a process's cgroup of version 2, from the contents of its mountinfo
// and of its cgroup file, or "". It is not always below /sys/fs/cgroup: with a hybrid hierarchy it is
// below /sys/fs/cgroup/unified, and in a container the mount may begin further down (its root).
func Dir(mountinfo, own string) string {
	at, _, _ := find(mountinfo, own, version2)
	return at
}

// version says where a process's cgroup is listed, and how its file system is mounted.
type version struct {
	listed  func(line string) (path string, is bool) // in the cgroup file
	mounted func(kind string) bool                   // what follows " - " in mountinfo
}

var version2 = version{
	func(line string) (string, bool) { return strings.CutPrefix(line, "0::") },
	func(kind string) bool { return strings.HasPrefix(kind, "cgroup2 ") },
}

// memory1 is the controller of memory in version 1.
var memory1 = version{
	func(line string) (string, bool) {
		_, rest, _ := strings.Cut(line, ":")
		controllers, path, _ := strings.Cut(rest, ":")
		return path, contains(controllers, "memory")
	},
	func(kind string) bool {
		fields := strings.Fields(kind)
		return len(fields) == 3 && fields[0] == "cgroup" && contains(fields[2], "memory")
	},
}

func contains(list, word string) bool { return strings.Contains(","+list+",", ","+word+",") }

// find returns the directory of a process's cgroup, and the mount in which that is.
func find(mountinfo, own string, v version) (dir, mount string, found bool) {
	at, listed := "", false
	for line := range strings.Lines(own) {
		if path, is := v.listed(strings.TrimSuffix(line, "\n")); is {
			at, listed = path, true
		}
	}
	if !listed || strings.HasPrefix(at, "/..") { // outside of this cgroup namespace
		return "", "", false
	}
	for line := range strings.Lines(mountinfo) {
		// "41 31 0:38 ROOT POINT rw,relatime - cgroup2 cgroup2 rw"
		before, kind, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		fields := strings.Fields(before)
		if len(fields) < 5 || !v.mounted(kind) || strings.HasPrefix(fields[3], "/..") {
			continue
		}
		mount = unescape.Replace(fields[4])
		rest, err := filepath.Rel(unescape.Replace(fields[3]), at)
		if err == nil && filepath.IsLocal(rest) {
			return filepath.Join(mount, rest), mount, true
		}
	}
	return "", "", false
}

// unescape undoes what mountinfo does to the characters that separate its fields.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// Memory returns how many bytes of memory this process may use until the kernel kills a process of
// one of its cgroups, of version 1 or 2, and false if no cgroup limits it. What other processes of the
// same cgroup use now is left out. root is the file system of the machine.
func Memory(root fs.FS) (bytes int64, limited bool) {
	mountinfo, own := read(root, "proc/self/mountinfo"), read(root, "proc/self/cgroup")
	least := int64(math.MaxInt64)
	for _, m := range []struct {
		version
		limit, used string
	}{{version2, "memory.max", "anon "}, {memory1, "memory.limit_in_bytes", "total_rss "}} {
		dir, mount, found := find(mountinfo, own, m.version)
		for ; found; dir = path.Dir(dir) {
			if limit, err := strconv.ParseInt(read(root, path.Join(dir, m.limit)), 10, 64); err == nil && limit < unlimited {
				least = min(least, max(limit-others(root, dir, m.used), 0))
			}
			found = dir != mount && len(dir) > len(mount)
		}
	}
	return least, least < math.MaxInt64
}

// unlimited is less than what version 1 shows if there is no limit: the largest number of pages.
const unlimited = 1 << 60

// others returns how much memory the other processes of a cgroup use that the kernel cannot take back.
func others(root fs.FS, dir, field string) int64 {
	own := number(read(root, "proc/self/status"), "RssAnon:") << 10
	return max(number(read(root, path.Join(dir, "memory.stat")), field)-own, 0)
}

// number returns the number in the line of a text that begins with a word, or 0.
func number(text, begins string) int64 {
	for line := range strings.Lines(text) {
		if rest, is := strings.CutPrefix(line, begins); is {
			if fields := strings.Fields(rest); len(fields) > 0 {
				n, _ := strconv.ParseInt(fields[0], 10, 64) // 0 if it is no number
				return n
			}
		}
	}
	return 0
}

// read returns the content of a file without the space around it, or "".
func read(root fs.FS, file string) string {
	content, _ := fs.ReadFile(root, strings.TrimPrefix(file, "/"))
	return strings.TrimSpace(string(content))
}

package cgroup

import (
	"strings"
	"testing"
	"testing/fstest"
)

const mib = 1 << 20

// machine is the file system of a machine with these files.
func machine(files map[string]string) fstest.MapFS {
	fs := fstest.MapFS{}
	for name, content := range files {
		fs[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return fs
}

const (
	two    = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	one    = "33 30 0:29 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n"
	hybrid = "31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" + one
	inside = "33 30 0:29 /docker/f00 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
)

func TestMemory(t *testing.T) {
	for what, c := range map[string]struct {
		files map[string]string
		want  int64 // MiB, -1 without a limit
	}{
		"no cgroups": {nil, -1},
		"version 2": {map[string]string{
			"proc/self/mountinfo": two, "proc/self/cgroup": "0::/user/a\n",
			"sys/fs/cgroup/user/a/memory.max": "419430400\n",
		}, 400},
		"version 2, no limit": {map[string]string{
			"proc/self/mountinfo": two, "proc/self/cgroup": "0::/user/a\n", "sys/fs/cgroup/user/a/memory.max": "max\n",
		}, -1},
		"version 2, the limit of a parent": {map[string]string{
			"proc/self/mountinfo": two, "proc/self/cgroup": "0::/user/a\n",
			"sys/fs/cgroup/user/memory.max": "104857600\n", "sys/fs/cgroup/user/a/memory.max": "419430400\n",
		}, 100},
		"version 2, in a namespace": {map[string]string{
			"proc/self/mountinfo": two, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "419430400\n",
		}, 400},
		"version 2, beside other processes": {map[string]string{
			"proc/self/mountinfo": two, "proc/self/cgroup": "0::/\n", "proc/self/status": "Name:\tx\nRssAnon:\t   10240 kB\n",
			"sys/fs/cgroup/memory.max": "419430400\n", "sys/fs/cgroup/memory.stat": "anon 115343360\nfile 999999999\n",
		}, 300},
		"version 1": {map[string]string{
			"proc/self/mountinfo": one, "proc/self/cgroup": "4:memory:/a\n3:cpuset:/\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "419430400\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 400},
		"version 1, no limit": {map[string]string{
			"proc/self/mountinfo": one, "proc/self/cgroup": "4:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n",
		}, -1},
		"version 1, in a container": {map[string]string{
			"proc/self/mountinfo": inside, "proc/self/cgroup": "4:cpu,memory:/docker/f00\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "419430400\n", "sys/fs/cgroup/memory/memory.stat": "rss 1\ntotal_rss 104857600\n",
		}, 300},
		"both": {map[string]string{
			"proc/self/mountinfo": hybrid, "proc/self/cgroup": "4:memory:/a\n0::/\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "419430400\n",
		}, 400},
		"less than others use": {map[string]string{
			"proc/self/mountinfo": two, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "1048576\n", "sys/fs/cgroup/memory.stat": "anon 115343360\n",
		}, 0},
	} {
		bytes, limited := Memory(machine(c.files))
		if limited != (c.want >= 0) || limited && bytes != c.want*mib {
			t.Errorf("%s: %d bytes, limited %t; want %d MiB", what, bytes, limited, c.want)
		}
	}
}

func TestDir(t *testing.T) {
	const (
		unified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
		hybrid  = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n" +
			"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n" +
			"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n"
		spaces = `41 31 0:38 /a\040b /mnt/c\011d rw - cgroup2 none rw` + "\n"
	)
	for _, c := range []struct{ mounts, own, want string }{
		{unified, "0::/user.slice/user-1000.slice\n", "/sys/fs/cgroup/user.slice/user-1000.slice"},
		{unified, "0::/\n", "/sys/fs/cgroup"},
		{hybrid, "4:memory:/x\n0::/y\n", "/sys/fs/cgroup/unified/y"},
		{hybrid, "4:memory:/x\n", ""},
		{spaces, "0::/a b/e\n", "/mnt/c\td/e"},
		{spaces, "0::/a b\n", "/mnt/c\td"},
		{spaces, "0::/a bc\n", ""}, // not below the mount's root
		{spaces, "0::/\n", ""},
		{unified, "0::/../elsewhere\n", ""}, // outside of the cgroup namespace
		{strings.Replace(unified, " / ", " /.. ", 1), "0::/\n", ""},
		{"", "0::/\n", ""},
		{unified, "", ""},
		{"torn", "0::/\n", ""},
	} {
		if got := Dir(c.mounts, c.own); got != c.want {
			t.Errorf("Dir(%q, %q) = %q, want %q", c.mounts, c.own, got, c.want)
		}
	}
}

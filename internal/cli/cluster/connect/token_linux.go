package connect

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// blank overwrites the value of a variable in the memory that /proc shows as the environment of this
// process. Unsetting a variable does not change that memory. If the kernel refuses the write, the
// value stays.
func blank(variable string) {
	from, to := environmentAt()
	memory, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil || to <= from {
		return
	}
	defer memory.Close()
	block := make([]byte, to-from)
	if _, err := memory.ReadAt(block, from); err != nil {
		return
	}
	at := from
	for _, entry := range bytes.SplitAfter(block, []byte{0}) {
		name, value, _ := bytes.Cut(bytes.TrimSuffix(entry, []byte{0}), []byte{'='})
		if string(name) == variable {
			// After a failure the value stays, as on systems that refuse the write.
			_, _ = memory.WriteAt(bytes.Repeat([]byte{'x'}, len(value)), at+int64(len(name)+1))
		}
		at += int64(len(entry))
	}
}

// environmentAt returns the range of memory with the environment that this process was started
// with, or 0, 0 if that is unknown.
func environmentAt() (from, to int64) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, 0
	}
	// The second field is a name in parentheses; fields 50 and 51 are the two addresses.
	const start, end = 50 - 3, 51 - 3
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= end {
		return 0, 0
	}
	from, wrong := strconv.ParseInt(fields[start], 10, 64)
	to, err = strconv.ParseInt(fields[end], 10, 64)
	if wrong != nil || err != nil {
		return 0, 0
	}
	return from, to
}

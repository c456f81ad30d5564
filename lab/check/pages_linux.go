package check

import (
	"syscall"
	"unsafe"
)

// largePage is the size of a large page of most processors.
const largePage = 2 << 20

// inLargePages asks the kernel to keep a large table in large pages. A search looks at
// random places of it, and the processor knows by heart where a few thousand pages are.
// If the kernel declines, nothing is lost but time.
func inLargePages[T any](table []T) {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(table))), len(table)*int(unsafe.Sizeof(table[0])))
	start := -uintptr(unsafe.Pointer(unsafe.SliceData(table))) % largePage // of the first whole page
	if uintptr(len(bytes)) >= start+largePage {
		_ = syscall.Madvise(bytes[start:], syscall.MADV_HUGEPAGE)
	}
}

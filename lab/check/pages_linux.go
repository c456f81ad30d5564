package check

import (
	"syscall"
	"unsafe"
)

// largePage is the size of a large page of most processors.
const largePage = 2 << 20

// inLargePages asks the kernel to keep a large table in large pages. A search accesses
// random positions of it, and the processor caches the addresses of only a few thousand
// pages. If the kernel declines, only time is lost.
func inLargePages[T any](table []T) {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(table))), len(table)*int(unsafe.Sizeof(table[0])))
	start := -uintptr(unsafe.Pointer(unsafe.SliceData(table))) % largePage // of the first whole page
	if uintptr(len(bytes)) >= start+largePage {
		_ = syscall.Madvise(bytes[start:], syscall.MADV_HUGEPAGE)
	}
}

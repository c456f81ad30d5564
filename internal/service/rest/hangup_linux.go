package rest

import "golang.org/x/sys/unix"

// hungUp reports whether the other side of a socket has closed it, or has said that it sends no more.
func hungUp(fd uintptr) bool {
	polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(polled, 0)
	return n > 0 && err == nil
}

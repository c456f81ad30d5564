package stream

// maxWaiters is how many waiters of a resource can be asked for.
const maxWaiters = 10000

// PageOf returns the number of entries of a page. The default is also the most.
func PageOf(limit uint32) int {
	if limit == 0 || limit > WatchPage {
		return WatchPage
	}
	return int(limit)
}

// WaitersOf returns how many waiters of a resource are listed.
func WaitersOf(limit uint32) int {
	if limit == 0 {
		return DefaultWaiters
	}
	return int(min(limit, maxWaiters))
}

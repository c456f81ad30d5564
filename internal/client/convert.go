package client

// Each converts a list. It returns nil for an empty one.
func Each[From, To any](list []From, convert func(From) To) (converted []To) {
	for _, from := range list {
		converted = append(converted, convert(from))
	}
	return converted
}

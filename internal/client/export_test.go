package client

// Streams returns the number of streams that the driver of a closed Conn has kept.
func (c *Conn) Streams() int { return len(c.driver.streams) }

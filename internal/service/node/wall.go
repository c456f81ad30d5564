package node

import "time"

// setBack is the smallest step of the wall clock that is logged. Daemons that keep clocks
// right make smaller ones.
const setBack = time.Second

// wallClock detects that the wall clock of the machine was set back. Nothing is decided by
// that clock, but people read times from it.
type wallClock struct {
	known  bool
	offset int64 // of the wall clock to the one that nobody sets
}

// step returns by how much the wall clock was set back since the last call, or 0.
func (w *wallClock) step(wall, boot int64) time.Duration {
	offset := wall - boot
	back := time.Duration(w.offset - offset)
	first := !w.known
	w.known, w.offset = true, offset
	if first || back < setBack {
		return 0
	}
	return back
}

func (n *Node) checkWall() {
	if back := n.wall.step(n.cfg.wall(), now()); back > 0 {
		n.log.Warn("the wall clock of this machine was set back; locks and sessions are not affected, but times shown from now on follow the new clock",
			"by", back.Round(time.Millisecond))
	}
}

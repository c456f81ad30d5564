package process

import "testing"

// Elections compare election labels, or labels if there are none. Of two equal labels,
// neither is above the other. Processes are still named by their labels.
func TestAbove(t *testing.T) {
	for _, w := range []struct {
		config     Config
		up, down   bool // 1 above 0, 0 above 1
		whoIsSeven ID
	}{
		{Config{N: 2}, true, false, None},
		{Config{N: 2, Labels: []Label{7, 3}}, false, true, 0},
		{Config{N: 2, Labels: []Label{7, 3}, ElectionLabels: []Label{1, 2}}, true, false, 0},
		{Config{N: 2, ElectionLabels: []Label{7, 7}}, false, false, None},
	} {
		c := w.config
		if err := c.validate(); err != nil {
			t.Error(err)
		}
		if c.Above(1, 0) != w.up || c.Above(0, 1) != w.down || c.Rank(7) != w.whoIsSeven {
			t.Errorf("%+v: 1 above 0 %v, 0 above 1 %v, label 7 is %d", c, c.Above(1, 0), c.Above(0, 1), c.Rank(7))
		}
	}
	if c := (&Config{N: 3, ElectionLabels: []Label{1, 1}}); c.validate() == nil {
		t.Error("2 election labels for 3 processes are accepted")
	}
}

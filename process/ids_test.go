package process

import (
	"slices"
	"testing"
)

func TestInsertAndRemove(t *testing.T) {
	if got := Insert([]ID{1, 4}, 2); !slices.Equal(got, []ID{1, 2, 4}) {
		t.Errorf("2 put into 1 and 4: %v", got)
	}
	if got := Insert([]ID{1, 4}, 4); !slices.Equal(got, []ID{1, 4}) {
		t.Errorf("4 put into 1 and 4: %v", got)
	}
	if got := Remove([]ID{2, 1, 2}, 2); !slices.Equal(got, []ID{1}) {
		t.Errorf("2 removed from 2, 1 and 2: %v", got)
	}
	if got := Remove([]ID{1}, 2); !slices.Equal(got, []ID{1}) {
		t.Errorf("2 removed from 1: %v", got)
	}
}

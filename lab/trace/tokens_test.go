package trace

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

// TestTokens checks that the lab's page uses the same colours and sizes as the pictures. The page
// reads them from a file that this test compares.
func TestTokens(t *testing.T) {
	type shades struct {
		Light string `json:"light"`
		Dark  string `json:"dark"`
	}
	colours := map[string]shades{}
	for _, c := range palette {
		colours[c.name] = shades{c.light, c.dark}
	}
	want, err := json.MarshalIndent(map[string]any{
		"colours": colours,
		"measures": map[string]int{
			"rowHeight": rowHeight, "leastGap": leastGap, "flightGap": flightGap, "mostGap": mostGap,
			"laneMin": laneMin, "laneMax": laneMax, "barMin": barMin, "barMax": barMax, "quietBar": quietBar,
		},
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	path := filepath.Join("..", "..", "web", "ui", "src", "tokens", "tokens.json")
	// The flag is declared by the tests of pictures.
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not what the palette and the measures say; run go test ./lab/trace -run TestTokens -update, then make web", path)
	}
}

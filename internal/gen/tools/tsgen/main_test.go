package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGenerate(t *testing.T) {
	t.Chdir(filepath.Join("..", repository))
	made, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"export type Uint64 = string;\n",
		"export interface Holder extends TextOrBase64 {\n  session_id: SessionID;\n  owner?: string;\n  hold: Uint64;\n",
		"export interface Sample extends Status {\n",
		"  how: 'released' | 'closed' | 'expired' | 'dropped';\n",
		"  latencies: LatencyCount[];\n",
		"  leader_since?: string;\n",
	} {
		if !strings.Contains(string(made), want) {
			t.Errorf("the types lack\n%s", want)
		}
	}
	if strings.Contains(string(made), ": any") {
		t.Error("a type is unknown")
	}
	present, err := os.ReadFile(output)
	if err != nil || string(present) != string(made) {
		t.Errorf("%s is not what is generated, %v", output, err)
	}
}

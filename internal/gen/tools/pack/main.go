// Command pack compresses a file with Brotli:
//
//	go run -C internal/gen/tools ./pack [-quality 9] FILE PACKED
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

	"github.com/andybalholm/brotli"
)

func main() {
	quality := flag.Int("quality", 9, "from 0 to 11: 11 is a little smaller and takes 15 times as long")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: pack [-quality N] FILE PACKED")
		os.Exit(2)
	}
	if err := pack(flag.Arg(0), flag.Arg(1), *quality); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func pack(from, to string, quality int) error {
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w := brotli.NewWriterOptions(&packed, brotli.WriterOptions{Quality: quality, LGWin: 24})
	if _, err := w.Write(raw); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	fmt.Printf("%s: %d bytes, packed %d\n", to, len(raw), packed.Len())
	return os.WriteFile(to, packed.Bytes(), 0o644)
}

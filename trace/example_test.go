package trace_test

import (
	"fmt"
	"io"
	"strings"

	"github.com/conclave-io/conclave/trace"
)

// A trace is read record by record.
func ExampleReader() {
	file := strings.NewReader(`{"conclave_trace":1,"source":"sim","clock":"virtual","algorithm":"central","labels":[1,2]}
{"id":1,"t":0,"p":1,"kind":"acquire","rules":["R1"]}
{"id":2,"cause":1,"t":1000,"p":2,"kind":"deliver","msg":{"name":"REQUEST","from":1,"to":2,"text":"REQUEST rid=1"}}
`)
	r, err := trace.NewReader(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Header.Algorithm)
	var record trace.Record
	for err = r.Next(&record); err == nil; err = r.Next(&record) {
		fmt.Println(record.String())
	}
	if err != io.EOF {
		fmt.Println(err)
	}
	// Output:
	// central
	// #1 t=0 1 acquire [R1]
	// #2 t=1000 2 gets REQUEST rid=1 from 1 (because of #1)
}

package trace_test

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// Read a trace record by record.
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

// Write the same records in another format.
func ExampleNewFormatWriter() {
	h := trace.Header{Algorithm: "central", Clock: "virtual", Labels: []process.Label{1, 2}}
	w, err := trace.NewFormatWriter("mermaid", os.Stdout, h)
	if err != nil {
		fmt.Println(err)
		return
	}
	coordinator := process.Label(2)
	request := &trace.Message{Name: "REQUEST", From: 1, To: &coordinator, Text: "REQUEST rid=1"}
	run := []trace.Record{
		{ID: 1, Process: 1, Kind: "acquire", Effects: []trace.Effect{{Kind: "send", Message: request}}},
		{ID: 2, Cause: 1, Time: 1000, Process: 2, Kind: "deliver", Message: request},
	}
	for i := range run {
		if err := w.Write(&run[i]); err != nil {
			fmt.Println(err)
		}
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// sequenceDiagram
	//     title central, 2 processes, seed 0
	//     accTitle: central, 2 processes, seed 0
	//     accDescr: What the processes of one run sent each other, from top to bottom.
	//     participant p1 as 1
	//     participant p2 as 2
	//     Note over p1: acquire
	//     p1->>p2: REQUEST rid=1
}

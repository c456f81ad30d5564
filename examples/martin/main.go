package main

import "github.com/conclave-io/conclave/lab/extend"

func main() { extend.Main(Spec) }

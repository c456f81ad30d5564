package main

import "github.com/conclave-io/conclave/extend"

func main() { extend.Main(Spec) }

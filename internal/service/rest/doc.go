// Package rest serves the calls of a server over HTTP/1.1 with JSON, for curl, browsers and
// programs without gRPC. The answers have the forms of package jsonform. The server carries out
// the calls behind the interface Server.
package rest

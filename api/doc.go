// Package api is the public interface of the service, generated from conclave.proto.
// The comments in that file are its reference. The package also has the table that
// translates the codes of replies to those of gRPC and HTTP, and the settings of connections.
package api

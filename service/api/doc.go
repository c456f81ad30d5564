// Package api is the public interface of the service, generated from
// conclave.proto, whose comments are its reference; and the table by which the
// codes of replies become those of gRPC and HTTP.
package api

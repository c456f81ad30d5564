// Package jsonform has the JSON forms of the messages of package api. The HTTP interface of the
// servers answers in them, the command line prints them with --json, and the types of the web
// page are generated from them. So each fact has the same name everywhere.
//
// The functions whose names end in Of make a form from a message. The bytes of a form never
// change: fields are only ever added.
package jsonform

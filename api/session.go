package api

// PublicPrefix starts the text of every public id of a session, and of no secret.
const PublicPrefix = "s-"

package servers

// RestWell is restWell, for the processes that the tests run.
var RestWell = restWell

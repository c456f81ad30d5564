// Package journal keeps a run as the inputs of its machines: events, messages and
// choices. A machine is a pure function of its inputs, so the state and the description
// of every record can be made from them at any time, without the world in which they
// happened. It is the format in which the simulator keeps runs for people to walk
// through.
package journal

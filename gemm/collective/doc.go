// Package collective measures all-reduce and all-gather between the cards of one host: their energy, and their power over time.
// It measures them alone and together with products of different weights.
//
// [Host.Compare] measures three things by the protocol of [power.Meter], with the sum of the cards' energies ([Joint]): the
// products alone, the collective alone, and both at once. With both at once, an execution is one pass through the products and
// one collective on a second stream. Both begin together, and the next execution begins when both have ended. Products alone need no
// exchange; the cards wait for each other after about 25 ms or 256 executions, because cards at their power cap differ in speed.
//
// [Host.OverTime] profiles the same three workloads: their power over time on every card, and its split by component.
//
// The collective moves activations, which no pass converts. Converted weights therefore do not change its bits. They change the
// collective's energy only through the power and memory bandwidth that the products leave to it while both run.
package collective

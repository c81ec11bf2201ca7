// Package collective measures the energy and the power over time of all-reduce and all-gather between the cards of one host,
// alone and beside products with different weights.
//
// [Host.Compare] measures three things by the protocol of [power.Meter], with the cards' energy added up ([Joint]): the products
// alone, the collective alone, and both at once. In the last, an execution is one pass through the products and one collective on a
// second stream. Both begin together, and the next execution begins when both have ended.
//
// [Host.OverTime] profiles the same three works: their power over time on every card, and its parts.
//
// The collective moves activations, which no pass converts. So converted weights leave its bits as they are, and can change the
// collective's energy only by what the products leave of the card's power and memory bandwidth while both run.
package collective

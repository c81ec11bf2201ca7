// Package power measures what an execution of some work costs on a GPU, well enough that a
// difference of 0.3 % means something, and says how sure it is.
//
// # What the sensors do
//
// The instrument is the card's energy counter: millijoules since the driver was loaded, stepping
// about every 100 ms. Between steps it says nothing, so a window begins and ends on a step. Power
// readings are cross-checks only: Yang, Adamek and Armour ("Accurate and Convenient Energy
// Measurements for GPUs", SC24, arXiv 2312.02741) found that on A100 and H100 the instant reading
// sees 25 of every 100 ms, and the average one is a running mean over a second, wrong for longer
// than many a measurement lasts. The Zeus project (ml.energy) prefers the counter for the same
// reasons. None of this is taken for granted: SelfTest finds the tick, the windows and the rise
// times of the card at hand, and refuses a counter that does not move.
//
// # The protocol
//
// Meter.Compare runs it all:
//
//  1. Self-test: idle, then a step of load.
//  2. Warm-up, until execution time is constant (the steady-state execution, SSE, of FinGraV) and
//     then power is (its steady-state power, SSP). Both are found, not assumed.
//  3. Blocks. A block runs every load once in a random order and once more in the opposite order:
//     A B B A, with any number of loads. What drifts in a straight line, as temperature nearly
//     does over a block, adds as much to each. Among the loads is the null: the baseline's work
//     on a copy of its operands.
//  4. A window: the load runs 150 ms or more to settle, and 3 s where it comes to the power cap from
//     lower power: an H200's control then overshoots by 40 W and swings with a period of about a
//     second. Then from a step of the counter to another about a second later; it keeps the card's
//     queue filled, so that the host never idles it. Mean power is the difference of the counter
//     over that of the time; the time of an execution is that of the whole run around the window
//     over its number of executions; energy per execution is their product.
//  5. Windows outside the fullest bin of their load's execution times are dropped, and their
//     blocks with them, and counted. The bin is 5 % wide up to 200 µs and 2 % above.
//  6. Ratios after/before are taken within each of a block's two passes; their geometric mean over
//     passes gets a 95 % interval by bootstrap, by Student's distribution below eight. It goes on
//     until every interval is as narrow as asked for, at four blocks at the earliest, or the time
//     is spent.
//  7. The null's interval must contain 1, or the run is invalid (this happens to one honest run
//     in twenty); its half width is the smallest effect that the run can tell from none.
//
// Steps 2 and 5 follow Singhania et al., "FinGraV: Methodology for Fine-Grain GPU Power Visibility
// and Insights", §III and §IV. What to weigh energy and time by (EDP, EDS) follows the literature
// on power capping, see the functions of these names.
//
// # At the power cap
//
// A card at its cap shows a saving first as a higher clock and a shorter time: power stays, energy
// and time fall together. So both ratios are always given, and Summary.Capped says in which
// regime a load ran.
//
// # What it cannot do
//
// Work of one execution should last at most a hundredth of a window. Carry-over longer than the
// settling time, from one load to the next, is averaged over random orders and not removed. The
// energy of another process on the card counts as ours; it is warned of.
//
// # Readings with their moments
//
// To see power inside a run, Card.Sample gives a sensor's value with the moment that the driver gives
// for it, and Card.Samples those that the driver kept of the last seconds. Clock.Of turns the wall
// clock's moments into a measurement's. What stretch of time a value is the mean of, and how late it
// is, no driver says: that must be found out.
//
// # Settings
//
// A Meter and a Card change no setting of the card. A Governor does: power limit and locked clock.
// Only `lowtoggle sweep` asks for one (Govern), when told to, and puts back what it found. A limit
// falls back to the card's own when the driver is loaded anew.
//
// # Use
//
// Open finds a card; NewSim makes one up, with virtual time, against which all of this is tested. It
// has the sensors, a clock of its own, sequences of executions with stamps by that clock, and a
// governor; OpenSim keeps what that sets in a file, as a card outlives the processes that set it.
// Cancelling the context ends within a second, with what was measured so far.
package power

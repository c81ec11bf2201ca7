// Package power measures the energy of GPU work. It resolves differences of 0.3 % and reports confidence intervals.
//
// # Sensors
//
// Energy is measured with the card's energy counter, in millijoules since the driver was loaded. The counter is updated
// about every 100 ms, and a measurement window starts and ends at an update. Power readings only serve as cross-checks.
// Yang, Adamek and Armour ("Accurate and Convenient Energy Measurements for GPUs", SC24, arXiv 2312.02741) found that
// on A100 and H100 the instant reading samples 25 ms of every 100 ms, and that the average reading is a running mean
// over a second. The Zeus project (ml.energy) prefers the counter for the same reasons. The self-test measures the
// counter's tick and the sensors' windows and rise times on every card. It rejects a counter that does not change.
//
// # The protocol
//
// [Meter.Compare] runs these steps:
//
//  1. Self-test: idle, then a step of load.
//  2. Warm-up, until execution time is constant (FinGraV's steady-state execution, SSE) and then
//     power is constant (its steady-state power, SSP).
//  3. Blocks. A block runs every load once in a random order and once more in the reverse order:
//     A B B A, with any number of loads. A linear drift, such as that of temperature, then adds the
//     same amount to every load. One of the loads is the null load: the baseline's work on a copy of its
//     operands. Loads can exchange their memory between blocks ([Loads].Arrangements). Every arrangement then
//     counts the same, and effects of the addresses cancel.
//  4. Windows. The load first runs for 150 ms to settle, or for 3 s if it reaches the power cap from
//     lower power: an H200's power control then overshoots by 40 W and oscillates with a period of about a
//     second. The window lasts from one update of the counter to another about a second later, and the
//     card's queue stays filled. Mean power is the counter's difference divided by the time. The time of
//     an execution is that of the whole run divided by its executions. Energy per execution is mean
//     power times this time.
//  5. Outliers. Windows outside the fullest bin of their load's execution times are dropped and counted,
//     and so are their blocks. The bin is 5 % wide up to 200 µs and 2 % above.
//  6. Ratios. After/before is taken within each of a block's two passes. The geometric mean over passes
//     gets a 95 % interval: by bootstrap, and by Student's distribution below eight passes or with several
//     arrangements. Blocks
//     continue until every interval is as narrow as Options.Precision, but for at least four blocks, or
//     until Options.Time ends.
//  7. Validity. The null's interval must contain 1, else the run is invalid. By chance this happens to
//     one correct run in twenty. The interval's half width is the smallest effect that the run resolves.
//
// Steps 2 and 5 follow Singhania et al., "FinGraV: Methodology for Fine-Grain GPU Power Visibility and Insights", §III
// and §IV. [EDP] and [EDS] are defined as in the literature on power capping.
//
// # At the power cap
//
// A card at its power cap first turns a saving into a higher clock: power stays constant, and energy and time fall
// together. Reports therefore contain both ratios, and Summary.Capped shows whether a load ran at the cap.
//
// # Below the power cap
//
// With Options.Duty the loads run in bursts with gaps ([Paced]), so that average power stays below the cap. All loads
// have the same time for an execution and its gaps. The meter measures the power in the gaps on the warm card. It
// subtracts the energy of the gaps from every window (Window.IdleJoules), so energy, time and ratios are those of the
// bursts. The card itself measures the duration of the bursts and counts a multiprocessor's cycles in them
// (Window.EffectiveClock). Summary.Limit shows what limited the clock, as far as these sensors show it.
//
// # Limits
//
// One execution should last at most a hundredth of a window. If a load affects the next load for longer than the
// settling time, random orders average this effect but do not remove it. The energy of other processes on the card is
// included, and a warning names these processes.
//
// # Time-stamped readings
//
// Card.Sample returns a sensor's value with the driver's time stamp. Card.Samples returns the readings that the driver
// has stored. Clock.Of converts wall-clock time to the measurement's clock. Drivers do not report the averaging window
// or the delay of a value. Package profile estimates both.
//
// # Settings
//
// A Meter and a Card do not change the card's settings. A [Governor] changes the power limit and locks the clock. Only
// `lowtoggle sweep` uses a Governor, on request, and it restores the settings. The driver resets the power limit when
// it is reloaded.
//
// # Use
//
// [Open] opens a card. [NewSim] returns a simulated card in virtual time, for tests and trials. It has sensors, a
// clock, launch sequences with time stamps, and a governor. [OpenSim] keeps the simulated card's settings in a file,
// because a real card's settings outlive processes. When its context ends, a measurement ends within a second and
// returns its results so far.
package power

// Package sweep measures what products take at several power limits or clocks of a card, and puts the
// card back.
//
// # Safety
//
// [Run] is the one thing in this module that changes a card's settings. It refuses a card with other
// processes, one that is cut into slices, one whose clocks somebody has set, and one that this process
// may not set ([Governor], [NewGuard]), and ends when another process comes. In a container the driver may
// show no processes: memory that is in use tells of one then, and the result says what could not be seen.
//
// Before the first change a [Watchdog] knows what is to be put back. A [Guard] does so when the sweep
// returns, fails, panics or is interrupted, reads the limit back and compares; where the process is killed,
// the watchdog does.
//
// A second sweep of a card would take the first one's limit for the original: callers keep them apart, as the
// command line does by a lock that the watchdog holds too. A limit that was changed after the [Plan] was made
// is refused.
//
// Not covered: a clock that was locked before cannot be read, so it is unlocked (what shows under load
// is refused); a sweep that is stopped (Ctrl-Z) leaves the card as it is until it goes on or is killed; a
// kill of a whole container or control group takes the watchdog along; and a machine that loses power comes
// back with the driver's defaults.
//
// # Measurement
//
// At every setting the original, a copy of it and the converted are compared as [measure.Compare] does, each
// time from a steady state that is found anew. Settings come in random order, with the reference (the limit that
// was found set, above which none is set unless it is asked for) at the beginning, in the middle and at the
// end, so that drift shows. A point's interval has the scatter of windows or that of the reference's visits,
// whichever makes it wider. The best setting is that of the lowest value; those that may as well have had it
// are named beside it.
//
// A [Result] may as well hold predictions: then it says so, in every point.
package sweep

// Package sweep measures the energy and time of products at several power limits or clocks of a card. It restores the
// card's settings afterwards.
//
// # Safety
//
// [Run] is the only function of this module that changes a card's settings. It refuses a card that is unsafe to change:
// one with other processes, with MIG slices, with clocks that somebody has set, or without permission to set it
// ([Governor], [NewGuard]). It ends when another process appears on the card. In a container the driver may hide other
// processes. The amount of memory in use can reveal them, and the result warns if processes cannot be listed.
//
// Before the first change a [Watchdog] receives the original settings. A [Guard] restores them when the sweep returns,
// fails, panics or is interrupted, and then reads the limit back. If the process is killed, the watchdog restores the
// settings ([StartWatchdog]).
//
// A second sweep of the same card would mistake the first sweep's limit for the original. Callers therefore hold
// [LockCard] during a sweep, and the watchdog inherits the lock. Run refuses to start if the limit has changed since
// the [Plan] was made.
//
// Limits of the protection: An earlier clock lock cannot be read, so the sweep always unlocks the clock at the end; a
// card that shows a locked clock under load is refused. A stopped sweep (Ctrl-Z) leaves the card as it is until the
// sweep continues or is killed. Killing a whole container or control group also kills the watchdog; [RestoreLeft] then
// restores the settings before the next sweep. After a power failure the driver's defaults apply.
//
// # Measurement
//
// At every setting the original, a copy of the original and the converted weights are compared as in [measure.Compare],
// starting from a new steady state. Settings are visited in random order. The reference is the power limit found at the
// start. It is visited first, in the middle and last, so that drift shows. Limits above the reference are only set on
// request. A point's interval comes from the scatter of windows or from the reference's visits, whichever is wider. The
// best setting has the lowest value of a metric. Settings that do not differ from it significantly are named with it.
//
// [Predict] computes the same [Result] from a calibration, without a card.
package sweep

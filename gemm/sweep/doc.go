// Package sweep measures the energy and time of products at several power limits or clocks of a card, and restores the
// card's settings afterwards.
//
// # Safety
//
// [Run] is the only function of this module that changes a card's settings. It refuses a card with other processes, a
// card that is split into MIG slices, a card whose clocks somebody has set, and a card that this process may not set
// ([Governor], [NewGuard]). It ends when another process appears on the card. In a container the driver may hide other
// processes: memory in use reveals them, and the result says what could not be seen.
//
// Before the first change a [Watchdog] receives the original settings. A [Guard] restores them when the sweep returns,
// fails, panics or is interrupted, and reads the limit back. If the process is killed, the watchdog restores them
// ([StartWatchdog]).
//
// A second sweep of a card would take the first one's limit for the original. So callers hold [LockCard] during a sweep;
// the watchdog inherits the lock. A limit that was changed after the [Plan] was made is refused.
//
// Not covered: a clock that was locked before cannot be read, so the clock is unlocked afterwards (a card that shows a
// locked clock under load is refused); a stopped sweep (Ctrl-Z) leaves the card as it is until it continues or is
// killed; killing a whole container or control group kills the watchdog, too; after a power failure the driver's
// defaults apply.
//
// # Measurement
//
// At every setting the original, a copy of it and the converted weights are compared as in [measure.Compare], from a new
// steady state. Settings are visited in random order. The reference, which is the limit that was found set, is visited
// first, in the middle and last, so that drift shows. Limits above the reference are only set if asked for. A point's
// interval comes from the scatter of windows or from the reference's visits, whichever is wider. The best setting has
// the lowest value of a metric; settings that cannot be told from it are named beside it.
//
// [Predict] makes the same [Result] from a calibration, without a card.
package sweep

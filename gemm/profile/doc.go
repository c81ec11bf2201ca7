// Package profile finds a kernel's power over time with sensors that are far slower than what they
// are asked about: how it rises when the card leaves idleness, when it is steady, and what a kernel
// draws right after another.
//
// It follows Singhania et al., "FinGraV: Methodology for Fine-Grain GPU Power Visibility and Insights",
// and goes on where that has a logger of one reading a millisecond. An H200's sensors see power through a filter of
// 12 ms, fifty times a second at best; but many runs, each begun at another phase of the sensors, give
// thousands of overlapping readings. [Stitch] finds the one curve of which all of them are what such sensors see,
// and how fine it can be told.
//
// [Take] does it all:
//
//  1. The self-test of gemm/power, then each kernel is timed five times. [Guide], the paper's table I,
//     says how many runs that takes and how much their execution times may differ. Runs that do not
//     count warm the die up.
//  2. The card's clock is read again and again while the card is idle; the quickest of each group
//     counts, half of its round trip is taken off, and a line through them ([Sync]) takes care of
//     drift.
//  3. Runs, from idleness, with the sensors asked in turns from shortly before until shortly after.
//     Executions are stamped by the card's own clock.
//  4. Golden runs alone are kept: those whose execution times lie in the fullest bin, at SSE and on the mean of the
//     second half, where the paper has SSP; a card that swings has none. Their readings are aligned: moved
//     to where the mean run had done as many executions.
//  5. The curve, the first execution of steady time (SSE) and of steady power (SSP).
//
// Of two kernels each runs first and second: the first legs say what each does alone, the second what
// it does after the other.
//
// A newcomer's way through the files: take.go and run.go measure, watch.go asks the sensors, clock.go and
// align.go say when; profiles.go puts readings in their places and result.go holds what comes out. The
// mathematics begins in stitch.go: place.go finds what sensors do (lag.go, level.go, onset.go, windows.go, worth.go)
// and how power follows pace (pace.go), fit.go the curve, from equations.go on cells.go, as smooth (roughness.go) as cross-validation says
// (smoothness.go), with readings weighed by their noise (noise.go); then resolution.go, bootstrap.go and
// hold.go, which keeps the curve from being coarse. steady.go, golden.go, after.go and inside.go ask the curve.
//
// In JSON times are in seconds, and their names end so.
package profile

// Package profile measures a kernel's power over time, with sensors that are far slower than the kernel: how power
// rises when the card leaves idle, when it is steady, and what a kernel draws right after another.
//
// It follows Singhania et al., "FinGraV: Methodology for Fine-Grain GPU Power Visibility and Insights". FinGraV has a
// power logger with a reading every millisecond. An H200's sensors read power through a filter of 12 ms, at most fifty
// times a second. So the readings of many runs, each begun at another phase of the sensors, are deconvolved into one
// power trace; see package stitch.
//
// [Measure] takes these steps:
//
//  1. The self-test of gemm/power. Then each kernel is timed five times. [Guide] (FinGraV's Table I) gives the number of
//     runs and the binning margin. Warm-up runs bring the die to its working temperature.
//  2. CPU–GPU time synchronisation ([ClockSync]): the card's clock is read again and again while the card is idle. The
//     quickest reading of each group counts, half of its round trip is subtracted, and a line through all groups
//     corrects for drift.
//  3. Runs of a launch sequence, each from an idle card. The sensors are read in turns, from shortly before until shortly
//     after. Executions are stamped by the card's own clock.
//  4. Only golden runs are kept: those whose execution times lie in the main bin, at SSE and, on average, in the second
//     half (the paper uses SSP, which a card whose power oscillates does not have). Their readings are aligned to the
//     mean run, by executions done.
//  5. The power trace, the first execution with steady execution time (SSE, steady-state execution) and the first with
//     steady power (SSP, steady-state power).
//  6. How many readings fall into the executions of SSE and SSP, beside Table I's number ([Density]).
//
// Of several products, each runs first and second (interleaved kernels in the paper). First segments show each product
// alone, second segments show it after another. A copy may take the place of a product. [Bursts] tell the power of the
// first milliseconds from energy, without a trace.
//
// Files: profile.go and run.go measure, sampler.go reads the sensors, clock.go and timeline.go tell the moments.
// assemble.go aligns the readings and makes the profiles, golden.go chooses the runs, result.go and milestones.go hold the
// results. steady.go, interleaved.go, execution.go and density.go evaluate the trace; burst.go needs none. recompute.go
// repeats all of that from recorded readings.
//
// In JSON, times are in seconds and their names end with "seconds".
package profile

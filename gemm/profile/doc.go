// Package profile measures a kernel's power over time with sensors that are far slower than the kernel. It shows how
// power rises from idle, when power is steady, and how much a kernel draws right after another kernel.
//
// It follows Singhania et al., "FinGraV: Methodology for Fine-Grain GPU Power Visibility and Insights". FinGraV's power
// logger has a reading every millisecond. An H200's sensors filter power with a time constant of 12 ms and update at
// most fifty times a second. Many runs therefore start at different phases of the sensors, and their readings are
// deconvolved into one power trace; see package stitch.
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
// With several products, each product runs in the first and in the second segment of a launch sequence (interleaved
// kernels in the paper). First segments show each product alone, second segments show each product after another. A
// copy may replace a product. [Bursts] give the power of the first milliseconds from the energy counter, without a
// trace.
//
// Files: profile.go and run.go measure, sampler.go reads the sensors, clock.go and timeline.go convert times.
// assemble.go aligns the readings and computes the profiles, golden.go selects the runs, result.go and milestones.go
// hold the results. steady.go, interleaved.go, execution.go and density.go evaluate the trace. burst.go needs no trace.
// recompute.go repeats the evaluation from recorded readings.
//
// In JSON, times are in seconds and their names end with "seconds".
package profile

// Command torture runs lowtoggle while disks, processes and limits fail, and checks the files that are left.
//
//	go run ./bench/torture -for 60s -seed 1
//	go run ./bench/torture -only shards -fault '[{"kind":"kill","n":17}]'
//
// Every trial runs one command line (a scenario) on a disk in memory, which the program sees through FUSE. The disk counts the
// program's operations and injects the trial's faults: kills and signals at the n-th change, errors, short writes, loss of
// power, a disk that vanishes, is slow, full or late, little memory, few descriptors, several processes at once, jumping clocks.
// Afterwards the command runs again without faults. After each run the source must be untouched, and the result
// absent or that of an undisturbed run. docs/reliability.md has the rest.
//
// The disk needs Linux, /dev/fuse and root.
package main

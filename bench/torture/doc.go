// Command torture runs lowtoggle under faults of disks, processes and limits, and checks the files afterwards.
//
//	go run ./bench/torture -for 60s -seed 1
//	go run ./bench/torture -only shards -fault '[{"kind":"kill","n":17}]'
//
// Every trial runs one command line (a scenario) on a disk in memory, which the program accesses through FUSE. The disk
// counts the program's operations and injects the trial's faults. Processes are killed or signalled at the n-th change.
// Operations fail, write too little, or lose their data with the power. The disk vanishes, is slow or full, or shows new
// names late. Memory or file descriptors are few, several processes run at once, or the clock jumps. Afterwards the command
// runs again without faults. After each run the source must be unchanged, and the result must be absent or equal to that of
// an undisturbed run. docs/reliability.md describes the trials.
//
// The disk needs Linux, /dev/fuse and root.
package main

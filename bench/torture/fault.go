//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"syscall"
)

var errorf = fmt.Errorf

// fault is one fault in one run of the program. With its JSON, -fault repeats the fault.
type fault struct {
	Kind string `json:"kind"`
	// N is the number, from 1, of the operation at which the fault occurs. It counts operations of kind Op for errors, all
	// operations for disks that vanish or are slow, and changes of the disk for all other faults.
	N  int        `json:"n,omitempty"`
	Op *operation `json:"op,omitempty"`
	// Errno is the error's number, Signal the signal's.
	Errno  syscall.Errno  `json:"errno,omitempty"`
	Signal syscall.Signal `json:"signal,omitempty"`
	// Lasting is true if all operations from the N-th on fail. After is true if a kill or loss of power follows the operation
	// instead of preventing it.
	Lasting bool `json:"lasting,omitempty"`
	After   bool `json:"after,omitempty"`
	// Amount is the limit of memory (KiB) or descriptors, the bytes of a full disk, the number of processes, lookups that miss a
	// new name, or hours by which the clock jumps.
	Amount int64 `json:"amount,omitempty"`
	// Seed chooses what survives a loss of power.
	Seed uint64 `json:"seed,omitempty"`
}

// Kinds of faults.
const (
	kindNone        = "none"
	kindKill        = "kill"        // SIGKILL at the N-th change
	kindSignal      = "signal"      // SIGINT, SIGTERM or SIGHUP at the N-th change
	kindPower       = "power"       // kill, and unsynced data is lost
	kindError       = "error"       // the N-th operation of a kind fails
	kindShort       = "short"       // the N-th write takes half of its data
	kindVanish      = "vanish"      // every operation fails from the N-th on
	kindLate        = "late"        // a renamed name is not found at first
	kindSlow        = "slow"        // twenty operations take 2 ms each
	kindFull        = "full"        // the disk has a limited number of free bytes
	kindMemory      = "memory"      // RLIMIT_AS
	kindDescriptors = "descriptors" // RLIMIT_NOFILE
	kindSeveral     = "several"     // several processes at once; if N is set, the first one is killed at the N-th change
	kindClock       = "clock"       // the disk's clock jumps at every change
)

// kinds lists each kind several times, in proportion to its probability.
var kinds = []string{
	kindKill, kindKill, kindKill, kindPower, kindPower, kindPower, kindPower, kindSignal, kindSignal, kindError, kindError, kindError, kindError,
	kindShort, kindVanish, kindLate, kindSlow, kindFull, kindMemory, kindDescriptors, kindSeveral, kindSeveral, kindClock,
}

var (
	changeErrors = []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.ESTALE, syscall.EINTR, syscall.EROFS}
	readErrors   = []syscall.Errno{syscall.EIO, syscall.ESTALE, syscall.EACCES, syscall.EINTR}
	goneErrors   = []syscall.Errno{syscall.ENOTCONN, syscall.EIO, syscall.ESTALE}
	signals      = []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
)

func pick[T any](rng *rand.Rand, of []T) T { return of[rng.IntN(len(of))] }

// draw returns a random fault for a run with about as many operations as counted.
func draw(rng *rand.Rand, counted tally) fault {
	f := fault{Kind: pick(rng, kinds)}
	change := 1 + rng.IntN(counted.changes)
	switch f.Kind {
	case kindKill:
		f.N, f.After = change, rng.IntN(2) == 0
	case kindSignal:
		f.N, f.Signal = change, pick(rng, signals)
	case kindPower:
		f.N, f.After, f.Seed = change, rng.IntN(2) == 0, rng.Uint64()
		if rng.IntN(4) == 0 {
			f.N = 0 // once the program has ended
		}
	case kindError:
		f.drawError(rng, counted)
	case kindShort:
		f.N = 1 + rng.IntN(max(1, counted.each[opWrite]))
	case kindVanish:
		f.N, f.Errno = 1+rng.IntN(counted.all), pick(rng, goneErrors)
	case kindLate:
		f.Amount = 1 + rng.Int64N(3)
	case kindSlow:
		f.N = 1 + rng.IntN(counted.all)
	case kindFull:
		f.Amount = 1 + rng.Int64N(int64(max(1, counted.each[opWrite]))*largestRequest)
	case kindMemory:
		f.Amount = 200<<10 + rng.Int64N(1400<<10)
	case kindDescriptors:
		f.Amount = 4 + rng.Int64N(12)
	case kindSeveral:
		f.Amount = pick(rng, []int64{2, 2, 8})
		if rng.IntN(2) == 0 {
			f.N = change
		}
	case kindClock:
		f.Amount = rng.Int64N(1<<18) - 1<<17
	}
	return f
}

// drawError chooses an operation that the program does, the error, and whether it stays.
func (f *fault) drawError(rng *rand.Rand, counted tally) {
	var done []operation
	for o, n := range counted.each {
		if n > 0 {
			done = append(done, operation(o))
		}
	}
	o := pick(rng, done)
	f.Op, f.N, f.Lasting = &o, 1+rng.IntN(counted.each[o]), rng.IntN(3) == 0
	f.Errno = pick(rng, readErrors)
	if o >= firstChange {
		f.Errno = pick(rng, changeErrors)
	}
	f.Lasting = f.Lasting && f.Errno != syscall.EINTR // after EINTR, programs repeat the operation
}

// mustSucceed reports whether the program must succeed in spite of the fault.
func (f fault) mustSucceed() bool {
	switch f.Kind {
	case kindNone, kindShort, kindSlow, kindClock:
		return true
	}
	return false
}

// endsProcess reports whether the fault may end a process without a message.
func (f fault) endsProcess() bool {
	return f.Kind == kindKill || f.Kind == kindPower || f.Kind == kindSeveral && f.N > 0 || f.Signal == syscall.SIGHUP
}

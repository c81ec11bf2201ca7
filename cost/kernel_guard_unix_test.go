//go:build unix

package cost

import (
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"golang.org/x/sys/unix"
)

// guarded returns memory between two inaccessible pages. Fill it, then call lock to make it read-only.
func guarded(t *testing.T, pages int) (memory []byte, lock func()) {
	page := os.Getpagesize()
	all, err := unix.Mmap(-1, 0, (pages+2)*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(all); err != nil {
			t.Error(err)
		}
	})
	protect := func(b []byte, protection int) {
		if err := unix.Mprotect(b, protection); err != nil {
			t.Fatal(err)
		}
	}
	memory = all[page : (pages+1)*page]
	protect(all[:page], unix.PROT_NONE)
	protect(all[(pages+1)*page:], unix.PROT_NONE)
	return memory, func() { protect(memory, unix.PROT_READ) }
}

// TestCountersStayInside: a read outside the data, or a write inside, would fault.
func TestCountersStayInside(t *testing.T) {
	forCounters(t, func(t *testing.T, c counter) {
		memory, lock := guarded(t, 4)
		for i := range memory {
			memory[i] = byte(i * i >> 3) // zeros, NaN and other values
		}
		lock()
		for _, d := range dtypes {
			l := newLanes(format(d))
			for _, n := range []int{4, c.unit - 4, c.unit, c.unit + 4, 3*c.unit + 4, 9*c.unit - 4, 9 * c.unit} {
				for _, lag := range []int{l.size, 64 + l.size, c.unit} {
					data := n + lag
					t.Run(fmt.Sprintf("%s/%d bytes/%d apart", d, n, lag), func(t *testing.T) {
						for _, at := range []int{0, len(memory) - data} {
							var fast, plain tally
							cur, before, above := neighbours(memory[at:at+data], l.size, lag, n)
							faultless(t, func() { c.add(&fast, l, cur, before, above) })
							plain.addPlain(l.format, cur, before, above)
							if fast != plain {
								t.Errorf("at %d: fast %+v\nplain %+v", at, fast, plain)
							}
						}
					})
				}
			}
		}
	})
}

// faultless turns a fault into a failed test. Without it, the process would end.
func faultless(t *testing.T, f func()) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			t.Fatal(r)
		}
	}()
	f()
}

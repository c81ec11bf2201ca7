package weights_test

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestSampledUntilClose: if a file is closed before its sampling ends, the end gives no advice about new memory at the same
// address.
func TestSampledUntilClose(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", weights.F32)
	f := m.Shards[0]
	data := f.Data()
	end := weights.Sampled(data)
	start := unsafe.Pointer(unsafe.SliceData(data))
	page := unsafe.Add(start, -int(uintptr(start)%uintptr(os.Getpagesize())))
	first := uintptr(page)
	testmodel.OK(t, f.Close())
	at, err := unix.MmapPtr(-1, 0, page, uintptr(len(data)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED_NOREPLACE)
	if err != nil {
		t.Skip("the address is in use again: ", err)
	}
	defer unix.MunmapPtr(at, uintptr(len(data)))
	other := unsafe.Slice((*byte)(at), len(data))
	other[0] = 7
	testmodel.OK(t, unix.Madvise(other, unix.MADV_RANDOM))
	end()
	if other[0] != 7 {
		t.Error("other memory was cleared")
	}
	if !slices.Contains(flagsOf(t, first), "rr") {
		t.Error("the advice about other memory was changed")
	}
}

// flagsOf returns the flags of the mapping that begins at an address, as /proc/self/smaps names them.
func flagsOf(t *testing.T, first uintptr) []string {
	t.Helper()
	file, err := os.Open("/proc/self/smaps")
	testmodel.OK(t, err)
	defer file.Close()
	inside := false
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var begin, end uintptr
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x ", &begin, &end); n == 2 {
			inside = begin <= first && first < end
		}
		if flags, is := strings.CutPrefix(lines.Text(), "VmFlags:"); is && inside {
			return strings.Fields(flags)
		}
	}
	t.Skip("this kernel does not tell the flags of mappings")
	return nil
}

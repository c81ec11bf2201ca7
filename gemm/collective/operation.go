package collective

import (
	"fmt"
	"strings"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
)

// ParseOperation reads "allreduce" or "allgather".
func ParseOperation(text string) (cuda.Collective, error) {
	for _, op := range []cuda.Collective{cuda.AllReduce, cuda.AllGather} {
		if text == string(op) {
			return op, nil
		}
	}
	return "", fmt.Errorf("unknown collective %q: give allreduce or allgather", strings.TrimSpace(text))
}

// Bandwidth is that of a collective in bytes per second, as nccl-tests define it (NVIDIA, nccl-tests, doc/PERFORMANCE.md).
type Bandwidth struct {
	// Algorithm is the size over the time. The size of an all-reduce is that of a card's buffer, that of an all-gather is
	// of the gathered data.
	Algorithm float64 `json:"algorithm_bytes_per_second"`
	// Bus is the traffic on each link of a ring over the time. It does not depend on the number of cards.
	Bus float64 `json:"bus_bytes_per_second"`
}

// BandwidthOf returns the bandwidth of a collective of a size in bytes, between a number of cards, that takes a time in seconds.
func BandwidthOf(op cuda.Collective, bytes int64, cards int, seconds float64) Bandwidth {
	algorithm, n := float64(bytes)/seconds, float64(cards)
	factor := (n - 1) / n
	if op == cuda.AllReduce {
		factor *= 2
	}
	return Bandwidth{algorithm, algorithm * factor}
}

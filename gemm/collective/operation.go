package collective

import (
	"fmt"
	"strings"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
)

// ParseOperation returns the collective named "allreduce" or "allgather".
func ParseOperation(text string) (cuda.Collective, error) {
	for _, op := range []cuda.Collective{cuda.AllReduce, cuda.AllGather} {
		if text == string(op) {
			return op, nil
		}
	}
	return "", fmt.Errorf("unknown collective %q: give allreduce or allgather", strings.TrimSpace(text))
}

// Bandwidth is the bandwidth of a collective in bytes per second, by the definitions of nccl-tests (NVIDIA, nccl-tests,
// doc/PERFORMANCE.md).
type Bandwidth struct {
	// Algorithm is size over time. The size of an all-reduce is the size of a card's buffer; the size of an all-gather is the
	// size of the gathered data.
	Algorithm float64 `json:"algorithm_bytes_per_second"`
	// Bus is the traffic on each link of a ring, over time. It does not depend on the number of cards.
	Bus float64 `json:"bus_bytes_per_second"`
}

// BandwidthOf returns the bandwidth of a collective of the given size in bytes, number of cards and time in seconds.
func BandwidthOf(op cuda.Collective, bytes int64, cards int, seconds float64) Bandwidth {
	algorithm, n := float64(bytes)/seconds, float64(cards)
	factor := (n - 1) / n
	if op == cuda.AllReduce {
		factor *= 2
	}
	return Bandwidth{algorithm, algorithm * factor}
}

package serve

import (
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Window is one measurement of a server in its steady state. If it is invalid, only Server, Begin and Invalid are set.
// It counts the tokens that arrived during the window, and the prompt tokens of requests whose first token arrived
// during the window.
type Window struct {
	Server string  `json:"server"`
	Begin  float64 `json:"begin_seconds"`            // time since the start of the run
	Length float64 `json:"length_seconds,omitempty"` // duration, between two steps of the first card's energy counter
	// Invalid is the reason why the window is invalid; empty for a valid window.
	Invalid      string  `json:"invalid,omitempty"`
	Watts        float64 `json:"watts,omitempty"` // total power of all cards
	OutputTokens float64 `json:"output_tokens,omitempty"`
	PromptTokens int     `json:"prompt_tokens,omitempty"`
	PerOutput    float64 `json:"joules,omitempty"`                 // per output token
	PerTotal     float64 `json:"joules_per_total_token,omitempty"` // per token of prompts and outputs
	Speed        float64 `json:"tokens_per_second,omitempty"`      // output tokens
	Requests     int     `json:"requests,omitempty"`               // number of requests whose first token arrived in the window
	// Streaming is the mean number of requests that are between their first and their last token. The other requests in
	// flight wait for their first token.
	Streaming  float64      `json:"streaming,omitempty"`
	FirstToken *Latency     `json:"time_to_first_token,omitempty"`
	InterToken *Latency     `json:"inter_token_latency,omitempty"`
	Cards      []power.Span `json:"cards,omitempty"`

	firsts, gaps []float64 // in seconds
}

// Latency holds percentiles in seconds.
type Latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// latency returns the percentiles of times in seconds; nil if there are none.
func latency(seconds []float64) *Latency {
	if len(seconds) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(seconds))
	return &Latency{stat.Quantile(0.5, stat.Empirical, sorted, nil), stat.Quantile(0.99, stat.Empirical, sorted, nil)}
}

// count sets the numbers of tokens and the latencies of the requests between two times.
func (w *Window) count(requests []*answer, begin, end time.Duration) {
	w.Length = (end - begin).Seconds()
	for _, a := range requests {
		if len(a.arrivals) == 0 {
			continue
		}
		first, last := a.arrivals[0], a.arrivals[len(a.arrivals)-1]
		each := float64(a.output) / float64(len(a.arrivals))
		if inside(first, begin, end) {
			w.Requests++
			w.PromptTokens += a.prompt
			w.firsts = append(w.firsts, (first - a.start).Seconds())
		}
		w.Streaming += max(0, (min(last, end)-max(first, begin)).Seconds()) / w.Length
		for i, at := range a.arrivals {
			if !inside(at, begin, end) {
				continue
			}
			w.OutputTokens += each
			if i > 0 && a.arrivals[i-1] > begin {
				w.gaps = append(w.gaps, (at - a.arrivals[i-1]).Seconds())
			}
		}
	}
	w.Speed = w.OutputTokens / w.Length
	w.FirstToken, w.InterToken = latency(w.firsts), latency(w.gaps)
}

func inside(at, begin, end time.Duration) bool { return begin < at && at <= end }

// weigh sets the energy and the figures that depend on it.
func (w *Window) weigh(cards []power.Span) {
	w.Cards = cards
	for _, c := range cards {
		w.Watts += c.Watts
	}
	w.PerOutput = w.Watts / w.Speed
	if w.PromptTokens > 0 {
		w.PerTotal = w.Watts * w.Length / (w.OutputTokens + float64(w.PromptTokens))
	}
}

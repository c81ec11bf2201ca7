package serve

import (
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Result is the result of a comparison. Ratios are after/before. Intervals are 95 % intervals. Joules and seconds are
// per output token unless a name says otherwise, and joules are the sum over all cards. Absent fields are unknown.
type Result struct {
	power.Header
	Baseline   Summary      `json:"baseline"`
	Null       *Comparison  `json:"null,omitempty"`
	Variants   []Comparison `json:"variants"`
	WindowTime float64      `json:"window_seconds"` // least duration of a window
	SettleTime float64      `json:"settle_seconds"`
	Workload   Workload     `json:"workload"`
	Servers    []ServerInfo `json:"servers"` // baseline, null, variants
	Cards      []power.Info `json:"cards"`
	IdleWatts  float64      `json:"idle_watts,omitempty"` // power of all cards, with the servers loaded and idle
	WarmUp     []Window     `json:"warm_up,omitempty"`    // windows of the warm-up, which no figure uses
	Blocks     []Block      `json:"blocks"`
}

// ServerInfo holds facts about a server from its first answer.
type ServerInfo struct {
	Server
	Model string `json:"model"`
	// Extras are the non-standard request fields that the server accepted.
	Extras Extras `json:"extras"`
	// Counted reports whether the server reports the number of tokens. If not, every part of an answer counts as one
	// token.
	Counted bool `json:"reports_usage"`
	// PromptTokens is the number of tokens of the first prompt, as reported by the server; absent if unknown.
	PromptTokens int `json:"first_prompt_tokens,omitempty"`
	// PerArrival is the mean number of tokens in one part of a streamed answer.
	PerArrival float64 `json:"tokens_per_arrival"`
}

// Summary holds a server's means over its valid windows in complete blocks. Latencies are over all requests in them.
type Summary struct {
	Name           string   `json:"name"`
	Joules         float64  `json:"joules,omitempty"`                 // per output token
	JoulesPerTotal float64  `json:"joules_per_total_token,omitempty"` // per token of prompts and outputs
	Watts          float64  `json:"watts,omitempty"`
	Seconds        float64  `json:"seconds,omitempty"` // per output token of the whole batch
	Speed          float64  `json:"tokens_per_second,omitempty"`
	FirstToken     *Latency `json:"time_to_first_token,omitempty"` // seconds
	InterToken     *Latency `json:"inter_token_latency,omitempty"` // seconds
	Streaming      float64  `json:"streaming,omitempty"`           // mean number of requests between their first and last token
	SMClock        *float64 `json:"clock_mhz,omitempty"`           // mean of the cards
	Temperature    *float64 `json:"temperature_c,omitempty"`       // temperature of the hottest card
	Capped         *bool    `json:"capped,omitempty"`              // whether a card was at its power limit in at least half of the samples
	Windows        int      `json:"windows"`
	InvalidWindows int      `json:"invalid_windows"` // including warm-up and incomplete blocks
}

// Comparison compares a server with the baseline.
type Comparison struct {
	RelativeEnergy float64   `json:"relative_energy,omitempty"` // per output token
	Interval       []float64 `json:"interval,omitempty"`
	RelativeTotal  float64   `json:"relative_energy_per_total_token,omitempty"`
	TotalInterval  []float64 `json:"total_interval,omitempty"`
	RelativeTime   float64   `json:"relative_time,omitempty"` // per output token
	TimeInterval   []float64 `json:"time_interval,omitempty"`
	Passes         int       `json:"passes"` // number of passes in the ratios
	Summary
}

// Block is two passes over all servers, the second in the reverse order of the first.
type Block struct {
	Passes []Pass `json:"passes"`
	// Complete is false for an interrupted block, which is left out of the ratios.
	Complete bool `json:"complete"`
}

// Pass has one valid window of each server, and the invalid windows before it.
type Pass struct {
	Windows []Window `json:"windows"`
}

// of returns a server's valid window; nil if there is none.
func (p Pass) of(server string) *Window {
	for i, w := range p.Windows {
		if w.Server == server && w.Invalid == "" {
			return &p.Windows[i]
		}
	}
	return nil
}

func newResult(cards []power.Card, o Options) *Result {
	r := &Result{Variants: []Comparison{}, Blocks: []Block{}, WindowTime: o.Window.Seconds(), SettleTime: o.Settle.Seconds(), Workload: o.Workload}
	for _, c := range cards {
		r.Cards = append(r.Cards, c.Info())
	}
	r.Header = power.NewHeader(r.Cards[0].Name, o.Date, o.Command, o.Seed, o.Precision)
	return r
}

// validate adds warnings about the final figures, and the reasons why they are not valid.
func (r *Result) validate() {
	for _, w := range r.windows("", false) {
		for _, c := range w.Cards {
			if c.Heat {
				r.Warn("a card reduced its clock because of its temperature: let the card cool, or check its airflow")
			}
		}
		if w.Invalid != "" {
			r.Warn("a window was left out: %s", w.Invalid)
		}
	}
	base := r.Servers[0]
	for _, s := range r.Servers {
		if s.Counted != base.Counted {
			r.Warn("only one of %s and %s reports token counts (usage), so the figures per token may not be comparable", base.Name, s.Name)
		}
		if s.Counted && base.Counted && s.PromptTokens != base.PromptTokens {
			r.Warn("the same prompt has %d tokens on %s and %d on %s: their tokenizers differ", base.PromptTokens, base.Name, s.PromptTokens, s.Name)
		}
	}
	for _, s := range r.summaries() {
		if most := float64(r.Workload.Concurrency); s.Windows > 0 && s.Streaming < most/2 {
			r.Warn("on average %s streams only %.1f of %.0f requests, and the other requests wait for their first token: check the server's limit of concurrent requests", s.Name, s.Streaming, most)
		}
	}
	switch {
	case r.Baseline.Windows == 0:
		r.Invalidate("no block was completed: allow more time")
	case r.Null != nil && r.Null.Interval != nil && (r.Null.Interval[0] > 1 || r.Null.Interval[1] < 1):
		r.Invalidate("the null comparison's interval [%.4f, %.4f] does not contain 1, so this run shows a difference between identical weights: measure again for a longer time", r.Null.Interval[0], r.Null.Interval[1])
	}
}

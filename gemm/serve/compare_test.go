package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/serve"
)

// small is a workload whose rounds last about 0.65 s.
var small = serve.Workload{Concurrency: 8, PromptTokens: 20, OutputTokens: 32}

func server(name string) serve.Server { return serve.Server{Name: name, URL: "http://" + name + "/v1"} }

// agrees reports whether a 95 % interval is at most this wide and not further from a value than an interval three times as wide
// reaches. The order of goroutines is left to chance, so one sound run in twenty would fail by the interval itself.
func agrees(interval []float64, value, width float64) bool {
	if len(interval) != 2 {
		return false
	}
	w := interval[1] - interval[0]
	return interval[0]-w <= value && value <= interval[1]+w && w <= width
}

func near(t *testing.T, what string, have, want, share float64) {
	t.Helper()
	if math.Abs(have-want) > share*math.Abs(want) {
		t.Errorf("%s: %v, want %v within %v %%", what, have, want, 100*share)
	}
}

// TestPlanted: servers that draw 6 % less, as much as the baseline, and as much at lower speed.
func TestPlanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		b := newBoard(1)
		models := map[string]*model{
			"a": {board: b, watts: 500}, "copy": {board: b, watts: 500}, "b": {board: b, watts: 470},
			"slow": {board: b, watts: 500, step: 25 * time.Millisecond, first: 100 * time.Millisecond},
		}
		for name, m := range models {
			n.start(t, name, m)
		}
		null := server("copy")
		r, err := serve.Compare(t.Context(), b.list(), serve.Servers{Baseline: server("a"), Null: &null, Variants: []serve.Server{server("b"), server("slow")}},
			serve.Options{Workload: small, Transport: n.transport(), Precision: 0.0008})
		if err != nil {
			t.Fatal(err)
		}
		if r.Stopped != power.StoppedPrecision && r.Stopped != power.StoppedTime || r.Warnings != nil {
			t.Errorf("stopped by %s, %v", r.Stopped, r.Warnings)
		}
		if null := r.Null.Interval; r.Valid != (null[0] <= 1 && 1 <= null[1]) {
			t.Errorf("valid %v, null %v", r.Valid, null)
		}
		less, slow := r.Variants[0], r.Variants[1]
		for _, c := range []struct {
			what     string
			interval []float64
			want     float64
		}{
			{"null", r.Null.Interval, 1}, {"−6 %", less.Interval, 0.94}, {"−6 %, total", less.TotalInterval, 0.94}, {"−6 %, time", less.TimeInterval, 1},
			{"slow", slow.Interval, (100 + 25*32.) / (20 * 32)}, {"slow, time", slow.TimeInterval, (100 + 25*32.) / (20 * 32)},
		} {
			if !agrees(c.interval, c.want, 0.01) {
				t.Errorf("%s: %v, want one around %v", c.what, c.interval, c.want)
			}
		}
		near(t, "speed", r.Baseline.Speed, 8/0.020, 0.01)
		near(t, "joules", r.Baseline.Joules, 500*0.020/8, 0.01)
		near(t, "joules per total token", r.Baseline.JoulesPerTotal, 500*0.020/8*32/52, 0.02)
		near(t, "first token", slow.FirstToken.P50, 0.125, 0.03)
		near(t, "next token", slow.InterToken.P50, 0.025, 0.01)
		if p := slow.InterToken; p.P99 < 1.03*p.P50 || p.P99 > 1.07*p.P50 { // 2 % of standard deviation
			t.Errorf("p99 %v", p)
		}
		near(t, "idle", r.IdleWatts, 90, 0.01)
		checkTurns(t, r, models)
	})
}

// checkTurns checks the order of turns and that all servers got the same prompts.
func checkTurns(t *testing.T, r *serve.Result, models map[string]*model) {
	orders := map[string]bool{}
	for _, b := range r.Blocks {
		var names [2][]string
		for i, p := range b.Passes {
			for _, w := range p.Windows {
				names[i] = append(names[i], w.Server)
				if w.Length < 10 || w.Length > 11.1 || w.Streaming < 6.8 || len(w.Cards) != 1 {
					t.Errorf("%s: %v s, %v streams, %d cards", w.Server, w.Length, w.Streaming, len(w.Cards))
				}
				whole := w.OutputTokens / (8 * 32)
				if whole-math.Floor(whole) > 0.2 {
					t.Errorf("%s: %v rounds", w.Server, whole)
				}
			}
		}
		slices.Reverse(names[1])
		if !slices.Equal(names[0], names[1]) {
			t.Errorf("a block's order is %v and then %v reversed", names[0], names[1])
		}
		orders[strings.Join(names[0], " ")] = true
	}
	if len(r.Blocks) < 2 || len(orders) < 2 {
		t.Errorf("%d blocks in %d orders", len(r.Blocks), len(orders))
	}
	both, distinct := 0, map[string]bool{}
	for _, prompt := range models["a"].seen {
		distinct[prompt] = true
	}
	for _, prompt := range models["copy"].seen {
		if distinct[prompt] {
			both++
		}
	}
	if n := len(models["a"].seen); len(distinct) < n-1 || both < n*95/100 {
		t.Errorf("%d requests have %d prompts, %d of them on both servers", n, len(distinct), both)
	}
}

// TestSeveralCards: their power adds up. The first block is measured to its end, and a warning says that it took more than the time.
func TestSeveralCards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		b := newBoard(3)
		n.start(t, "a", &model{board: b, watts: 400})
		r, err := serve.Compare(t.Context(), b.list(), serve.Servers{Baseline: server("a")}, serve.Options{Workload: small, Transport: n.transport(), Time: 10 * time.Second})
		if err != nil || !r.Valid || len(r.Cards) != 3 || len(r.Blocks[0].Passes[0].Windows[0].Cards) != 3 {
			t.Fatal(err, r)
		}
		near(t, "power", r.Baseline.Watts, 1200, 0.01)
		near(t, "joules", r.Baseline.Joules, 3*400*0.020/8, 0.01)
		near(t, "idle", r.IdleWatts, 270, 0.01)
		if text, err := json.Marshal(r); err != nil || strings.Contains(string(text), `"null"`) || r.Stopped != power.StoppedTime || len(r.Warnings) != 1 || !strings.HasPrefix(r.Warnings[0], "the first block took ") {
			t.Errorf("%v: %s", err, text)
		}
	})
}

// TestLockstep: a server without continuous batching begins and ends all requests together and draws more for prompts. A
// window holds prompts and answers in their right proportion.
func TestLockstep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		b := newBoard(1)
		idle := make(chan struct{}, 1)
		idle <- struct{}{}
		n.start(t, "a", &batches{idle: idle, model: model{board: b, watts: 300, step: 20 * time.Millisecond}, prompts: 650, first: 320 * time.Millisecond})
		r, err := serve.Compare(t.Context(), b.list(), serve.Servers{Baseline: server("a")}, serve.Options{Workload: small, Transport: n.transport(), Time: 2 * time.Minute})
		if err != nil || !r.Valid {
			t.Fatal(err, r)
		}
		round := 0.320 + 32*0.020 + 0.001 // the last is the time to gather
		near(t, "joules", r.Baseline.Joules, (650*0.320+300*32*0.020+90*0.001)/(8*32), 0.01)
		near(t, "speed", r.Baseline.Speed, 8*32/round, 0.01)
	})
}

// TestSlow: an answer may take longer than Options.Stall, which limits the time without a token. A window waits for the first
// request of every slot, also where that takes longer than Options.Settle.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		b := newBoard(1)
		n.start(t, "a", &model{board: b, watts: 400, step: time.Second})
		measure := time.Duration(0)
		begin := time.Now()
		r, err := serve.Compare(t.Context(), b.list(), serve.Servers{Baseline: server("a")}, serve.Options{
			Workload: small, Transport: n.transport(), Stall: 20 * time.Second, Time: time.Minute,
			Progress: func(e serve.Event) {
				if e.Stage == "measure" && measure == 0 {
					measure = time.Since(begin)
				}
			}})
		if err != nil || !r.Valid {
			t.Fatal(err, r)
		}
		w := r.Blocks[0].Passes[0].Windows[0]
		if wait := w.Begin - measure.Seconds(); wait < 31 || wait > 36 || w.Length < 31 || w.Length > 36 {
			t.Errorf("a window of %v s begins after %v s", w.Length, wait)
		}
		near(t, "speed", r.Baseline.Speed, 8, 0.02)
	})
}

// broken has the ways in which one answer fails, with the expected message.
var broken = map[string]struct {
	spoil func(w http.ResponseWriter, r *http.Request)
	want  string
}{
	"500": {func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, `{"error": {"message": "CUDA out of memory"}}`, http.StatusInternalServerError)
	}, "status 500 Internal Server Error: CUDA out of memory"},
	"empty 503": {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, "status 503 Service Unavailable: (nothing)"},
	"terminal": {func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "\x1b[31m\xffred"+strings.Repeat("x", 1<<20), http.StatusInternalServerError)
	}, "[31m�red"},
	"redirect": {func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere/", http.StatusTemporaryRedirect)
	}, "status 307 Temporary Redirect"},
	"hangs":  {func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no token for 20s"},
	"closes": {func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, "the server closed the connection"},
	"no stream": {func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"choices": []}`))
	}, `the server does not stream: Content-Type "application/json": {"choices": []}`},
	"malformed":    {events("data: {\"choices\": [\n\n"), "an event is not the JSON of a completion (unexpected end of JSON input): {\"choices\": [: look at the server's log"},
	"wrong type":   {events("data: {\"choices\": 3}\n\n"), "an event is not the JSON of a completion"},
	"not UTF-8":    {events("data: {\"choices\": [{\"text\": \"\xff\"}]}\n\n"), "an event of the stream is not UTF-8"},
	"huge line":    {func(w http.ResponseWriter, r *http.Request) { endless(w, r, "xxxxxxxx") }, "an event of the stream has more than 1048576 bytes"},
	"huge event":   {func(w http.ResponseWriter, r *http.Request) { endless(w, r, "data: xxxxxxxx\n") }, "an event of the stream has more than 1048576 bytes"},
	"only pings":   {pings, "no token for 20s"},
	"stalls":       {func(w http.ResponseWriter, r *http.Request) { events(token)(w, r); <-r.Context().Done() }, "no token for 20s"},
	"ends early":   {events(token), "the server closed the connection after 1 of"},
	"in an event":  {events(token + "data: {"), "the server closed the connection after 1 of"},
	"error event":  {events(token + "data: {\"error\": {\"message\": \"engine died\", \"code\": 500}}\n\n"), "the server reports an error: engine died"},
	"error object": {events(token + "data: {\"object\": \"error\", \"message\": \"too long\"}\n\n"), "the server reports an error: too long"},
	"needs a key":  {func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no key", http.StatusUnauthorized) }, "status 401 Unauthorized: no key: servers with an API key are not supported"},
	"refuses and closes": {func(w http.ResponseWriter, r *http.Request) {
		c, _, _ := w.(http.Hijacker).Hijack()
		defer c.Close()
		fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno")
		c.Read(make([]byte, 1)) // closes once the connection is used again
	}, "status 400 Bad Request: no"},
	"too short": {events(token + "data: {\"choices\": [{\"text\": \"\", \"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n"), "because the model ended it (finish_reason \"stop\"): ask for fewer output tokens"},
	"too long":  {func(w http.ResponseWriter, r *http.Request) { endless(w, r, token) }, "the server sent more than the requested "},
	"no text":   {events("data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 3, \"completion_tokens\": 32}}\n\ndata: [DONE]\n\n"), "the answer has no text: look at the server's log"},
	"never ends": {func(w http.ResponseWriter, r *http.Request) {
		events(token+"data: [DONE]\n\n")(w, r)
		<-r.Context().Done()
	}, "no token for 20s"},
}

const token = "data: {\"choices\": [{\"text\": \"a\"}]}\n\n"

// events writes a stream and ends.
func events(text string) func(w http.ResponseWriter, r *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Write([]byte(text))
		w.(http.Flusher).Flush()
	}
}

// endless writes the same text until the client has gone.
func endless(w http.ResponseWriter, r *http.Request, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for r.Context().Err() == nil {
		if _, err := w.Write([]byte(text)); err != nil {
			return
		}
	}
}

func pings(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for r.Context().Err() == nil {
		w.Write([]byte(": ping\n\n"))
		w.(http.Flusher).Flush()
		select {
		case <-time.After(time.Second): // of the bubble
		case <-r.Context().Done():
		}
	}
}

// TestBrokenAtFirst: nothing is measured, and the error names the server and the reason.
func TestBrokenAtFirst(t *testing.T) {
	for name, c := range broken {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n network
				b := newBoard(1)
				n.start(t, "a", &model{})
				n.start(t, "b", &model{spoil: func(_ int, w http.ResponseWriter, r *http.Request) bool { c.spoil(w, r); return true }})
				r, err := serve.Compare(t.Context(), b.list(), serve.Servers{Baseline: server("a"), Variants: []serve.Server{server("b")}},
					serve.Options{Workload: small, Transport: n.transport(), Stall: 20 * time.Second})
				if r != nil || err == nil || !strings.HasPrefix(err.Error(), "server b at http://b/v1: ") || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 400 {
					t.Errorf("%v, want %q", err, c.want)
				}
			})
		})
	}
}

// TestBrokenOnce: one broken answer spoils its window. The window stays in the result with the reason, another one takes its
// place, and the figures are right.
func TestBrokenOnce(t *testing.T) {
	for name, c := range broken {
		if testing.Short() && !slices.Contains([]string{"500", "closes", "stalls", "too short"}, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n network
				b := newBoard(1)
				n.start(t, "a", &model{board: b, watts: 400})
				n.start(t, "b", &model{board: b, watts: 400, spoil: func(request int, w http.ResponseWriter, r *http.Request) bool {
					if request == 110 {
						c.spoil(w, r)
					}
					return request == 110
				}})
				r, err := serve.Compare(t.Context(), b.list(), serve.Servers{Baseline: server("a"), Variants: []serve.Server{server("b")}},
					serve.Options{Workload: small, Transport: n.transport(), Stall: 20 * time.Second, Time: 40 * time.Second, Window: 2 * time.Second, Settle: time.Second})
				if err != nil || !r.Valid {
					t.Fatal(err, r)
				}
				var invalid []string
				for _, b := range r.Blocks {
					for _, p := range b.Passes {
						for _, w := range p.Windows {
							if w.Invalid != "" {
								invalid = append(invalid, w.Server+": "+w.Invalid)
							}
						}
					}
				}
				if len(invalid) != 1 || !strings.HasPrefix(invalid[0], "b: server b, request ") || !strings.Contains(invalid[0], c.want) {
					t.Errorf("invalid windows: %q, want %q", invalid, c.want)
				}
				if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "a window was left out") || r.Variants[0].InvalidWindows != 1 || r.Baseline.InvalidWindows != 0 {
					t.Errorf("%q, %d and %d windows", r.Warnings, r.Variants[0].InvalidWindows, r.Baseline.InvalidWindows)
				}
				if v := r.Variants[0]; v.Passes < 2 {
					t.Errorf("%d passes", v.Passes)
				}
				near(t, "energy", r.Variants[0].RelativeEnergy, 1, 0.02)
			})
		})
	}
}

// TestBrokenForGood: the run ends with the server's error, and keeps its measurements.
func TestBrokenForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		b := newBoard(1)
		n.start(t, "a", &model{board: b, watts: 400})
		n.start(t, "b", &model{board: b, watts: 376, spoil: func(request int, w http.ResponseWriter, r *http.Request) bool {
			if request > 800 {
				http.Error(w, "gone", http.StatusInternalServerError)
			}
			return request > 800
		}})
		r, err := serve.Compare(t.Context(), b.list(), serve.Servers{Baseline: server("a"), Variants: []serve.Server{server("b")}},
			serve.Options{Workload: small, Transport: n.transport(), Time: time.Hour, Precision: 1e-9})
		if err == nil || !strings.HasPrefix(err.Error(), "3 windows in a row are invalid; reason for the last one: server b, request ") || !strings.Contains(err.Error(), "status 500 Internal Server Error: gone") {
			t.Fatal(err)
		}
		if r == nil || r.Stopped != power.StoppedFailed || len(r.Blocks) < 2 || r.Blocks[len(r.Blocks)-1].Complete || !agrees(r.Variants[0].Interval, 0.94, 0.05) {
			t.Errorf("%+v", r)
		}
	})
}

// TestCancel: in every stage a cancelled comparison ends within a second with its figures so far.
func TestCancel(t *testing.T) {
	for stage, after := range map[string]time.Duration{"servers": 300 * time.Millisecond, "idle": time.Second, "warm-up": 8 * time.Second, "measure": 70 * time.Second} {
		t.Run(stage, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n network
				b := newBoard(1)
				n.start(t, "a", &model{board: b, watts: 400})
				n.start(t, "b", &model{board: b, watts: 376})
				ctx, cancel := context.WithCancel(t.Context())
				last, ends := "", time.Time{}
				r, err := serve.Compare(ctx, b.list(), serve.Servers{Baseline: server("a"), Variants: []serve.Server{server("b")}},
					serve.Options{Workload: small, Transport: n.transport(), Time: time.Hour, Precision: 1e-9, Progress: func(e serve.Event) {
						if e.Stage == stage && last != stage {
							ends = time.Now().Add(after)
							time.AfterFunc(after, cancel)
						}
						last = e.Stage
					}})
				if late := time.Since(ends); !errors.Is(err, context.Canceled) || late < 0 || late > time.Second || last != stage {
					t.Errorf("%v, %v late, in stage %s", err, late, last)
				}
				switch {
				case stage == "servers":
					if r != nil {
						t.Error("there is a result")
					}
				case r == nil || r.Stopped != power.StoppedCancelled || r.Valid != (stage == "measure") || (r.Variants[0].RelativeEnergy > 0) != (stage == "measure"):
					t.Errorf("%+v", r)
				}
				cancel()
			})
		})
	}
}

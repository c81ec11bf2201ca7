package card

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/clitest"
	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/serve"
)

// pipes are connections without sockets, so that time advances in a bubble of testing/synctest.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (pipes) Close() error   { return nil }
func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// tokens is a server that streams a token every 20 ms, or every 25 ms on the host slow. The host silent never
// answers.
func tokens(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Max int `json:"max_tokens"`
	}
	if r.Host == "silent" {
		<-r.Context().Done()
		return
	}
	if r.Method == http.MethodGet {
		fmt.Fprint(w, `{"data": [{"id": "tiny"}]}`)
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	step := 20 * time.Millisecond
	if r.Host == "slow" {
		step = 25 * time.Millisecond
	}
	for range q.Max {
		select {
		case <-time.After(step): // time of the bubble
		case <-r.Context().Done():
			return
		}
		fmt.Fprint(w, "data: {\"choices\": [{\"text\": \"a\"}]}\n\n")
		w.(http.Flusher).Flush()
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// served runs measure on these servers.
func served(t *testing.T, ctx context.Context, args ...string) (stdout string, err error) {
	p := make(pipes)
	s := &http.Server{Handler: http.HandlerFunc(tokens)}
	go s.Serve(p)
	before := http.DefaultTransport
	http.DefaultTransport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		p <- there
		return here, nil
	}}
	defer func() {
		http.DefaultTransport = before
		close(p)
		s.Close()
	}()
	out, err := clitest.Run(ctx, []*cli.Command{Measure}, append([]string{"measure", "--device", "simulated", "--concurrency", "4", "--output-tokens", "16"}, args...)...)
	for line := range strings.Lines(string(out)) {
		if utf8.RuneCountInString(strings.TrimSpace(line)) > 100 && !strings.Contains(line, `"command"`) {
			t.Errorf("longer than 100: %s", line)
		}
	}
	return string(out), err
}

// TestMeasureServers: a simulated card has constant power, so a slower server uses more energy per token.
func TestMeasureServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, err := served(t, t.Context(), "--serve", "a=http://a", "--serve", "slow=http://slow", "--null", "copy=http://copy", "--time", "3m")
		if err != nil && !errors.Is(err, exit.ErrShort) {
			t.Fatal(err)
		}
		for _, want := range []string{
			"simulated card: 4 requests at a time, prompts of 512 random tokens, answers of 16 tokens\n\n",
			"\na               ", "\ncopy (null)  ", "\nslow              +2",
			" 20.0     20.0     20.0     20.0\n", " 25.0     25.0     25.0     25.0\n",
			"\nsimulated: 2 blocks in 1", "; effects below 0.", " W with all servers", "note: the card is simulated",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		out, err := served(t, t.Context(), "--serve", "a=http://a", "--time", "15s", "--json")
		var r serve.Result
		if err != nil || json.Unmarshal([]byte(out), &r) != nil || r.Baseline.Joules < 1.5 || r.Baseline.Joules > 2.5 || r.Workload.Concurrency != 4 || len(r.Blocks) != 1 || r.Command == "" {
			t.Errorf("%v: %s", err, out)
		}
	})
	synctest.Test(t, func(t *testing.T) { // interrupted
		ctx, cancel := context.WithTimeout(t.Context(), 75*time.Second)
		defer cancel()
		time.AfterFunc(75*time.Second, cancel)
		out, err := served(t, ctx, "--serve", "a=http://a", "--serve", "b=http://b", "--time", "1h")
		if err == nil || !strings.Contains(out, "the measurement was interrupted; the report has the figures so far") {
			t.Errorf("%v: %s", err, out)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		if _, err := served(t, t.Context(), "--serve", "a=http://a", "--serve", "b=http://b", "--time", "20s", "--precision", "0.00001%"); !errors.Is(err, exit.ErrShort) {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // the message says what to do about a silent server
		if _, err := served(t, t.Context(), "--serve", "a=http://silent", "--stall", "2s"); err == nil || !strings.HasSuffix(err.Error(), "no answer for 2s: look at the server's log, or give a longer --stall") {
			t.Error(err)
		}
	})
}

// TestServeReport: a report with many digits, several cards and remarks stays within the width.
func TestServeReport(t *testing.T) {
	yes, clock := true, 1234.5
	latency := &serve.Latency{P50: 12.3456, P99: 45.678}
	s := serve.Summary{Name: "a-server-with-a-long-name-12345", Joules: 0.123456, JoulesPerTotal: 12.3456e-3, Watts: 5432.1, Speed: 123456.7, SMClock: &clock, Capped: &yes, FirstToken: latency, InterToken: latency, Windows: 8}
	c := serve.Comparison{Summary: s, RelativeEnergy: 0.81234, Interval: []float64{0.8, 0.82345}, RelativeTime: 1.21234, TimeInterval: []float64{1.2, 1.22345}, Passes: 8}
	r := serveReport{&serve.Result{Baseline: s, Null: &c, Variants: []serve.Comparison{c, {Summary: serve.Summary{Name: "new"}}},
		Workload: serve.Workload{Concurrency: 64, OutputTokens: 256, Source: "prompts.txt"}, Servers: make([]serve.ServerInfo, 4), Cards: make([]power.Info, 8),
		Header: power.Header{GPU: "NVIDIA H200", Stopped: power.StoppedFailed, Resolvable: 0.01234, Invalid: []string{"a reason"}, Warnings: []string{"a warning"}}}}
	var b bytes.Buffer
	r.print(&b)
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(line) - 1; n > 100 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	for _, want := range []string{"64 requests at a time, prompts of prompts.txt, answers of 256 tokens, on 8 cards", "(null)", "INVALID: a reason", "warning: a warning", "\nnew ", "note: the measurement failed; the report has the figures so far"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

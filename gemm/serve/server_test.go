package serve_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/serve"
)

// short are options for a comparison of one or two blocks.
func short(n *network) serve.Options {
	return serve.Options{Workload: small, Transport: n.transport(), Time: 20 * time.Second, Window: 2 * time.Second, Settle: time.Second, Stall: 20 * time.Second}
}

// TestServers: servers differ in the fields that they accept and send, and tokens are counted correctly.
func TestServers(t *testing.T) {
	for name, c := range map[string]struct {
		model      *model
		url        string
		prompts    []serve.Prompt
		extras     serve.Extras
		counted    bool
		perArrival float64
		warning    string
	}{
		"all extras":  {model: &model{}, url: "http://a/v1", extras: serve.Extras{Usage: true, IgnoreEOS: true, MinTokens: true}, counted: true, perArrival: 1},
		"no path":     {model: &model{}, url: "http://a", extras: serve.Extras{Usage: true, IgnoreEOS: true, MinTokens: true}, counted: true, perArrival: 1},
		"slash":       {model: &model{}, url: "http://a/v1/", extras: serve.Extras{Usage: true, IgnoreEOS: true, MinTokens: true}, counted: true, perArrival: 1},
		"whole path":  {model: &model{}, url: "http://a/v1/completions", extras: serve.Extras{Usage: true, IgnoreEOS: true, MinTokens: true}, counted: true, perArrival: 1},
		"strict":      {model: &model{strict: true}, url: "http://a/v1", extras: serve.Extras{Usage: true}, counted: true, perArrival: 1},
		"silent":      {model: &model{silent: true}, url: "http://a/v1", extras: serve.Extras{Usage: true, IgnoreEOS: true, MinTokens: true}, perArrival: 1, warning: "only one of a and b reports token counts (usage)"},
		"two a part":  {model: &model{pair: true}, url: "http://a/v1", extras: serve.Extras{Usage: true, IgnoreEOS: true, MinTokens: true}, counted: true, perArrival: 2},
		"chat":        {model: &model{chat: true}, url: "http://a/v1/chat/completions", prompts: []serve.Prompt{{Text: "Tell me"}}, extras: serve.Extras{Usage: true, IgnoreEOS: true, MinTokens: true}, counted: true, perArrival: 1},
		"named model": {model: &model{}, url: "http://a/v1#tiny", extras: serve.Extras{Usage: true, IgnoreEOS: true, MinTokens: true}, counted: true, perArrival: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n network
				b := newBoard(1)
				c.model.board, c.model.watts = b, 400
				n.start(t, "a", c.model)
				n.start(t, "b", &model{board: b, watts: 400})
				o := short(&n)
				o.Workload.Prompts = c.prompts
				r, err := serve.Compare(t.Context(), b.list(), serve.Servers{Baseline: serve.Server{Name: "a", URL: c.url}, Variants: []serve.Server{server("b")}}, o)
				if err != nil {
					t.Fatal(err)
				}
				a := r.Servers[0]
				if a.Model != "tiny" || a.Extras != c.extras || a.Counted != c.counted || a.PerArrival != c.perArrival {
					t.Errorf("%+v", a)
				}
				if text := strings.Join(r.Warnings, "\n"); !strings.Contains(text, c.warning) || (text == "") != (c.warning == "") {
					t.Errorf("%q", r.Warnings)
				}
				near(t, "speed", r.Baseline.Speed, 8/0.020, 0.02)
				near(t, "energy", r.Variants[0].RelativeEnergy, 1, 0.02)
			})
		})
	}
}

// TestModels checks valid and invalid lists of models.
func TestModels(t *testing.T) {
	for text, want := range map[string]string{
		`{"data": []}`:                        "the server lists no models: add a model to the address, as in http://127.0.0.1:8000/v1#llama",
		`{}`:                                  "the server lists no models",
		`{"data": [{"id": ""}]}`:              "the server lists no models",
		`<html>` + strings.Repeat("x", 1<<21): "the server's answer is not a list of models in JSON: <html>",
		``:                                    "the server's answer is not a list of models in JSON: (nothing)",
		`{"data": [{"id": "else"}]}`:          "status 400 Bad Request",
	} {
		synctest.Test(t, func(t *testing.T) {
			var n network
			mux := http.NewServeMux()
			mux.HandleFunc("/v1/models", func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(text)) })
			mux.Handle("/v1/completions", &model{})
			n.start(t, "a", mux)
			_, err := serve.Compare(t.Context(), newBoard(1).list(), serve.Servers{Baseline: server("a")}, short(&n))
			if err == nil || !strings.HasPrefix(err.Error(), "server a at http://a/v1: "+want) || len(err.Error()) > 400 {
				t.Errorf("%.40s: %v, want %q", text, err, want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // a server of chats alone
		var n network
		mux := http.NewServeMux()
		mux.Handle("/v1/models", &model{})
		mux.Handle("/v1/chat/completions", &model{chat: true})
		n.start(t, "a", mux)
		_, err := serve.Compare(t.Context(), newBoard(1).list(), serve.Servers{Baseline: server("a")}, short(&n))
		if err == nil || !strings.Contains(err.Error(), "status 404 Not Found: 404 page not found; if the server offers only chat completions, give the full address") {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var n network
		n.start(t, "a", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		_, err := serve.Compare(t.Context(), newBoard(1).list(), serve.Servers{Baseline: server("a")}, short(&n))
		if err == nil || err.Error() != "server a at http://a/v1: models: no answer for 20s" {
			t.Error(err)
		}
		_, err = serve.Compare(t.Context(), newBoard(1).list(), serve.Servers{Baseline: server("nowhere")}, short(&n))
		if err == nil || err.Error() != "server nowhere at http://nowhere/v1: models: connection refused" {
			t.Error(err)
		}
	})
}

// TestRefused: wrong requests are refused before anything is sent.
func TestRefused(t *testing.T) {
	a, cards := server("a"), newBoard(1).list()
	for want, c := range map[string]struct {
		servers serve.Servers
		opt     serve.Options
	}{
		`server "a" at http://a/v1: give every server its own name`:                           {serve.Servers{Baseline: a, Variants: []serve.Server{a}}, serve.Options{}},
		`server "a" at http://b: give every server its own name`:                              {serve.Servers{Baseline: a, Null: &serve.Server{Name: "a", URL: "http://b"}}, serve.Options{}},
		`server "" at http://b: give every server its own name`:                               {serve.Servers{Baseline: serve.Server{URL: "http://b"}}, serve.Options{}},
		`server b at http://a has the address of server a: give every server its own address`: {serve.Servers{Baseline: a, Null: &serve.Server{Name: "n", URL: "http://n"}, Variants: []serve.Server{{Name: "b", URL: "http://a"}}}, serve.Options{}},
		`server a: "ftp://b" is not the address`:                                              {serve.Servers{Baseline: serve.Server{Name: "a", URL: "ftp://b"}}, serve.Options{}},
		`server a: "127.0.0.1:8000" is not the address`:                                       {serve.Servers{Baseline: serve.Server{Name: "a", URL: "127.0.0.1:8000"}}, serve.Options{}},
		`server a: "http:///v1" is not the address`:                                           {serve.Servers{Baseline: serve.Server{Name: "a", URL: "http:///v1"}}, serve.Options{}},
		`server a: "http://u:p@b" is not the address`:                                         {serve.Servers{Baseline: serve.Server{Name: "a", URL: "http://u:p@b"}}, serve.Options{}},
		"precision 2: give a share":                                                           {serve.Servers{Baseline: a}, serve.Options{Precision: 2}},
		"window 1ms: give at least 1s":                                                        {serve.Servers{Baseline: a}, serve.Options{Window: time.Millisecond}},
		"time -1ns: give more than 0\nsettle -1ns: give more than 0\nstall -1ns":              {serve.Servers{Baseline: a}, serve.Options{Time: -1, Settle: -1, Stall: -1}},
		"tries -1: give at least 1":                                                           {serve.Servers{Baseline: a}, serve.Options{Tries: -1}},
		"concurrency 5000: give 1 to 4096\noutput tokens 1: give 2 to 1048576":                {serve.Servers{Baseline: a}, serve.Options{Workload: serve.Workload{Concurrency: 5000, OutputTokens: 1}}},
		"prompt tokens -1: give 1 to 1048576\nvocabulary 3: give more than 3":                 {serve.Servers{Baseline: a}, serve.Options{Workload: serve.Workload{PromptTokens: -1, Vocab: 3}}},
	} {
		r, err := serve.Compare(t.Context(), cards, c.servers, c.opt)
		if r != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := serve.Compare(t.Context(), nil, serve.Servers{Baseline: a}, serve.Options{}); err == nil || err.Error() != "a comparison of servers needs at least one card" {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var n network
		n.start(t, "a", &model{chat: true})
		_, err := serve.Compare(t.Context(), cards, serve.Servers{Baseline: serve.Server{Name: "a", URL: "http://a/v1/chat/completions"}}, short(&n))
		if err == nil || !strings.HasSuffix(err.Error(), "chat completions do not accept token IDs: give prompts as text") {
			t.Error(err)
		}
	})
}

func TestReadPrompts(t *testing.T) {
	for text, want := range map[string]string{
		"one":                         `["one"]`,
		"one\r\n\n  \ntwo {\n":        `["one","two {"]`,
		"\ufeffone\n":                 `["one"]`,
		`{"prompt": "a\nb", "id": 3}`: `["a\nb"]`,
		"{\"prompt\": [1, 2]}\n\n{\"prompt\": \"x\"}": `[[1,2],"x"]`,
	} {
		list, err := serve.ReadPrompts(strings.NewReader(text))
		have, _ := json.Marshal(list)
		if err != nil || string(have) != want {
			t.Errorf("%q: %s (%v), want %s", text, have, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "the file has no prompts: write one prompt per line", "\n \n": "the file has no prompts", "a\n\xff": "line 2 is not UTF-8",
		"{\"prompt\": \"a\"}\nb": "line 2: invalid character 'b'", "{}": `line 1 has no field "prompt"`, `{"prompt": ""}`: "line 1: the prompt is empty",
		`{"prompt": []}`: "the prompt is empty", `{"prompt": [-1]}`: "token ID -1: give a number of at least 0", `{"prompt": [1.5]}`: "a prompt must be a string or a list of token IDs",
		`{"prompt": {"a": 1}}`: "a prompt must be a string or a list", "a\n" + strings.Repeat("x", 17<<20): "line 2 has more than 16777216 bytes",
	} {
		if list, err := serve.ReadPrompts(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v (%v), want %q", text, list, err, want)
		}
	}
}

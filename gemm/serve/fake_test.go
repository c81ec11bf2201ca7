package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/serve"
)

// network connects clients with servers of the same test without sockets, so that it works in a bubble of
// testing/synctest: there time passes only while everybody waits.
type network struct {
	mu        sync.Mutex
	listeners map[string]*listener
}

type listener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }

// transport dials servers of the network.
func (n *network) transport() *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: 1000, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		n.mu.Lock()
		l := n.listeners[address]
		n.mu.Unlock()
		if l == nil {
			return nil, fmt.Errorf("connection refused")
		}
		here, there := net.Pipe()
		select {
		case l.conns <- there:
			return here, nil
		case <-l.done:
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
}

// start serves a handler at http://HOST until the test ends.
func (n *network) start(t *testing.T, host string, h http.Handler) {
	t.Helper()
	l := &listener{conns: make(chan net.Conn), done: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = map[string]*listener{}
	}
	n.listeners[host+":80"] = l
	s := &http.Server{Handler: h}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
}

// board is the card that all servers of a test share.
type board struct {
	mu    sync.Mutex
	cards []*power.LiveSim
	load  map[*model]float64
}

func newBoard(cards int) *board {
	b := &board{load: map[*model]float64{}}
	for i := range cards {
		o := power.DefaultSim()
		o.Seed, o.Leakage, o.DipRate = uint64(i+1), 0, 0
		b.cards = append(b.cards, power.NewLiveSim(o))
	}
	return b
}

func (b *board) list() (cards []power.Card) {
	for _, c := range b.cards {
		cards = append(cards, c)
	}
	return cards
}

// draw sets what a server draws of each card.
func (b *board) draw(m *model, watts float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.load[m] = watts
	total := 0.0
	for _, w := range b.load {
		total += w
	}
	for _, c := range b.cards {
		c.Draw(total)
	}
}

// model is a server with continuous batching: every step gives each request in the batch one token. Zero fields are
// ordinary behaviour.
type model struct {
	board *board
	watts float64       // while anything is in the batch
	step  time.Duration // of one token of every request; default 20 ms
	first time.Duration // of a prompt, beside a step

	spoil  func(request int, w http.ResponseWriter, r *http.Request) bool // answers itself and returns true
	silent bool                                                           // reports no usage
	strict bool                                                           // refuses unknown fields
	pair   bool                                                           // two tokens an event
	chat   bool

	mu       sync.Mutex
	requests int
	active   int
	seen     []string // bodies
}

type asked struct {
	Model    string       `json:"model"`
	Prompt   serve.Prompt `json:"prompt"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	MaxTokens   int     `json:"max_tokens"`
	Temperature float64 `json:"temperature"`
	Stream      bool    `json:"stream"`

	MinTokens     int  `json:"min_tokens"`
	IgnoreEOS     bool `json:"ignore_eos"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/v1/models":
		fmt.Fprint(w, `{"object": "list", "data": [{"id": "tiny"}, {"id": "other"}]}`)
		return
	case "/v1/completions", "/v1/chat/completions":
	default:
		http.NotFound(w, r)
		return
	}
	var q asked
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || !q.Stream || q.Model != "tiny" {
		http.Error(w, fmt.Sprintf(`{"error": {"message": "bad request %v"}}`, err), http.StatusBadRequest)
		return
	}
	if m.strict && (q.MinTokens > 0 || q.IgnoreEOS) {
		http.Error(w, `{"detail": "extra fields not permitted"}`, http.StatusUnprocessableEntity)
		return
	}
	m.mu.Lock()
	number := m.requests
	m.requests++
	m.seen = append(m.seen, fmt.Sprint(q.Prompt, q.MaxTokens))
	m.mu.Unlock()
	if m.spoil != nil && m.spoil(number, w, r) {
		return
	}
	m.answer(w, r, q, number)
}

func (m *model) enter(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.active += n
	if m.board == nil {
		return
	}
	switch {
	case m.active == 0:
		m.board.draw(m, 0)
	case m.active == n: // the first
		m.board.draw(m, m.watts)
	}
}

func (m *model) answer(w http.ResponseWriter, r *http.Request, q asked, number int) {
	m.enter(1)
	defer m.enter(-1)
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	step := m.step
	if step == 0 {
		step = 20 * time.Millisecond
	}
	rng := rand.New(rand.NewPCG(1, uint64(number)))
	pause := func(d time.Duration) bool {
		d = time.Duration(float64(d) * (1 + 0.02*rng.NormFloat64()))
		select {
		case <-time.After(d): // of the bubble
			return true
		case <-r.Context().Done():
			return false
		}
	}
	if !pause(m.first + step) {
		return
	}
	for i := range q.MaxTokens {
		if i > 0 && !pause(step) {
			return
		}
		finish := "null"
		if i == q.MaxTokens-1 {
			finish = `"length"`
		}
		if m.pair && i%2 == 0 && i < q.MaxTokens-1 {
			continue // its text comes with the next one
		}
		text := `"text": "tok "`
		if m.chat {
			text = `"delta": {"content": "tok "}`
		}
		fmt.Fprintf(w, "data: {\"choices\": [{\"index\": 0, %s, \"finish_reason\": %s}]}\n\n", text, finish)
		w.(http.Flusher).Flush()
	}
	if q.StreamOptions.IncludeUsage && !m.silent {
		fmt.Fprintf(w, "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": %d, \"completion_tokens\": %d}}\n\n", max(1, len(q.Prompt.Tokens)), q.MaxTokens)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// batches is a server that answers all requests of a batch together and has one batch at a time. The prompts of a batch
// draw another power.
type batches struct {
	model
	prompts float64       // watts
	first   time.Duration // of a batch's prompts

	idle chan struct{} // holds a value while no batch runs; not a mutex, on which a bubble's time would stand still
	next *batch        // gathers requests
}

type batch struct {
	tokens int             // of the longest answer
	steps  []chan struct{} // closed one after the other
}

// join adds a request to the next batch, which gathers requests for a millisecond and while another one runs.
func (m *batches) join(tokens int) *batch {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.next == nil {
		b := &batch{}
		for range 32 {
			b.steps = append(b.steps, make(chan struct{}))
		}
		m.next = b
		go m.run(b)
	}
	m.next.tokens = max(m.next.tokens, tokens)
	return m.next
}

func (m *batches) run(b *batch) {
	<-m.idle
	defer func() { m.idle <- struct{}{} }()
	time.Sleep(time.Millisecond) // of the bubble
	m.mu.Lock()
	m.next = nil
	m.mu.Unlock()
	m.board.draw(&m.model, m.prompts)
	time.Sleep(m.first)
	m.board.draw(&m.model, m.watts)
	for _, step := range b.steps[:b.tokens] {
		time.Sleep(m.step)
		close(step)
	}
	m.board.draw(&m.model, 0)
}

func (m *batches) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/completions" {
		m.model.ServeHTTP(w, r)
		return
	}
	var q asked
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, step := range m.join(q.MaxTokens).steps[:q.MaxTokens] {
		<-step
		fmt.Fprint(w, token)
		w.(http.Flusher).Flush()
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

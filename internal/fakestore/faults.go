package fakestore

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// Fault is a kind of fault of a request.
type Fault int

// Faults of requests.
const (
	Cut     Fault = iota // the connection ends in the middle of the request or of the answer
	Delay                // the answer is late
	Busy                 // the answer is 503
	Lost                 // the request is carried out, and the answer does not arrive
	Twice                // the request is carried out twice, and the second answer arrives
	Changed              // a byte of the body changes on the way to the store
	faults
)

func (f Fault) String() string {
	return [...]string{"cut", "delay", "busy", "lost", "twice", "changed"}[f]
}

// Faulty makes some requests to a store fail.
type Faulty struct {
	Store http.Handler
	Rate  float64 // share of the requests that fail
	Only  []Fault // empty: all kinds
	Down  bool    // no request is answered

	mu   sync.Mutex
	rand *rand.Rand
	Seen map[Fault]int
}

// NewFaulty returns a handler with pseudo-random faults. The faults depend only on seed.
func NewFaulty(store http.Handler, seed uint64, rate float64, only ...Fault) *Faulty {
	return &Faulty{Store: store, Rate: rate, Only: only, rand: rand.New(rand.NewPCG(seed, 1)), Seen: map[Fault]int{}}
}

// Set sets the share of requests that fail. With down, no request is answered.
func (f *Faulty) Set(rate float64, down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Rate, f.Down = rate, down
}

func (f *Faulty) choose() (fault Fault, ok, down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Down {
		return 0, false, true
	}
	if f.rand.Float64() >= f.Rate {
		return 0, false, false
	}
	fault = Fault(f.rand.IntN(int(faults)))
	if len(f.Only) > 0 {
		fault = f.Only[f.rand.IntN(len(f.Only))]
	}
	f.Seen[fault]++
	return fault, true, false
}

// ServeHTTP passes a request on, or injects a fault.
func (f *Faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault, ok, down := f.choose()
	switch {
	case down:
		end()
	case !ok:
		f.Store.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		end()
	}
	carryOut := func(body []byte) *httptest.ResponseRecorder {
		again := r.Clone(r.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		f.Store.ServeHTTP(answer, again)
		return answer
	}
	switch fault {
	case Busy:
		if isBlob(r) {
			answer{503, "ServerBusy"}.write(w)
		} else {
			answer{503, "SlowDown"}.write(w)
		}
		return
	case Delay:
		time.Sleep(20 * time.Millisecond)
	case Lost:
		carryOut(body)
		end()
	case Twice:
		carryOut(body)
	case Changed:
		if r.Method == http.MethodPut && len(body) > 0 && r.URL.Query().Get("comp") != "blocklist" { // block lists have no checksum
			body[len(body)/2] ^= 1
		}
	}
	got := carryOut(body)
	for name, v := range got.Header() {
		w.Header()[name] = v
	}
	w.WriteHeader(got.Code)
	data := got.Body.Bytes()
	if fault == Cut {
		w.Write(data[:len(data)/2])
		if c, ok := w.(http.Flusher); ok {
			c.Flush()
		}
		end()
	}
	w.Write(data)
}

// end ends the connection without another byte.
func end() { panic(http.ErrAbortHandler) }

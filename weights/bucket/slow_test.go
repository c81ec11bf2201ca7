package bucket_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/fakestore"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/bucket"
)

// line is a slow transport to a store in this process: it carries a piece of each body, then pauses.
type line struct {
	store    http.Handler
	piece    int           // bytes
	pause    time.Duration // before each piece
	requests int
}

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	l.requests++
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(&slowly{r.Body, r, l}); err != nil {
			return nil, err
		}
	}
	again := r.Clone(r.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	again.Header = http.Header{}
	for name, v := range r.Header {
		again.Header[http.CanonicalHeaderKey(name)] = v // as a server reads it
	}
	answer := httptest.NewRecorder()
	l.store.ServeHTTP(answer, again)
	made := answer.Result()
	made.Body = &slowly{made.Body, r, l}
	return made, nil
}

type slowly struct {
	io.ReadCloser
	r *http.Request
	l *line
}

func (s *slowly) Read(p []byte) (int, error) {
	select {
	case <-time.After(s.l.pause):
	case <-s.r.Context().Done():
		return 0, s.r.Context().Err()
	}
	return s.ReadCloser.Read(p[:min(len(p), s.l.piece)])
}

// TestSlowLine: a transfer that takes many minutes succeeds at its first attempt if bytes keep moving. A transfer without
// moving bytes is cancelled and repeated. The time is virtual.
func TestSlowLine(t *testing.T) {
	eachProtocol(t, testSlowLine)
}

func testSlowLine(t *testing.T, scheme string) {
	data := []byte(strings.Repeat("0123456789", 100_000))
	for name, c := range map[string]struct {
		pause time.Duration
		fails bool
	}{"slow": {50 * time.Second, false}, "still": {70 * time.Second, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := fakestore.New("models")
				store.Put("models", "x", data)
				for name, value := range fakestore.Environment("http://store.example") {
					t.Setenv(name, value)
				}
				l := &line{store: store, piece: 100_000, pause: c.pause}
				bucket.SetTransport(t, l)
				f := open(t, scheme+"://models")
				check := func(what string, err error) {
					t.Helper()
					switch {
					case c.fails && (!errors.Is(err, weights.ErrUnreachable) || !strings.Contains(err.Error(), "no data was transferred for 1m0s")):
						t.Errorf("%s: error %v", what, err)
					case !c.fails && (err != nil || l.requests != 1):
						t.Errorf("%s: error %v after %d requests", what, err, l.requests)
					}
					l.requests = 0
				}
				start := time.Now()
				got := make([]byte, len(data))
				check("reading", f.ReadAt(t.Context(), weights.Object{Path: "x", Size: int64(len(data))}, got, 0))
				if !c.fails && !bytes.Equal(got, data) {
					t.Error("other bytes were read")
				}
				check("writing", f.Write(t.Context(), "y", data))
				if took := time.Since(start); took < 10*time.Minute {
					t.Errorf("it took only %v", took)
				}
				if have := store.Objects("models", ""); !c.fails && !maps.Equal(have, map[string]string{"x": string(data), "y": string(data)}) {
					t.Error("other bytes were written")
				}
			})
		})
	}
}

package bucket

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// A request has no time limit while bytes are transferred, because a slow connection is no error. The context of an attempt
// carries a function. The bodies of its requests and answers call this function for every piece.

// stillError is the error of a request that was cancelled because no byte moved for this time.
type stillError time.Duration

func (e stillError) Error() string {
	return fmt.Sprintf("no data was transferred for %v", time.Duration(e))
}

// movedKey is the context key of the function that reports moved bytes.
type movedKey struct{}

// untilStill returns a context that ends with a stillError once no byte has moved for limit.
func untilStill(ctx context.Context, limit time.Duration) (attempt context.Context, end func()) {
	attempt, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cancel(stillError(limit)) })
	moved := func() { timer.Reset(limit) }
	return context.WithValue(attempt, movedKey{}, moved), func() {
		timer.Stop()
		cancel(nil)
	}
}

// watched is a transport whose request and answer bodies report every piece to the request's context.
type watched struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (w watched) RoundTrip(r *http.Request) (*http.Response, error) {
	moved, ok := r.Context().Value(movedKey{}).(func())
	if !ok { // a list request has no such function
		return w.RoundTripper.RoundTrip(r)
	}
	if r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0 {
		r = r.WithContext(r.Context()) // a copy
		r.Body = moving{r.Body, moved}
	}
	answer, err := w.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	moved()
	answer.Body = moving{answer.Body, moved}
	return answer, nil
}

// moving is a body that calls moved for every piece.
type moving struct {
	io.ReadCloser
	moved func()
}

func (m moving) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if n > 0 {
		m.moved()
	}
	return n, err
}

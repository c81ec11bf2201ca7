package bucket

import (
	"net/http"
	"testing"
	"time"
)

func init() { firstPause = time.Millisecond }

// SetStillTime sets how long requests may stand still until the test ends.
func SetStillTime(t *testing.T, d time.Duration) {
	was := stillTime
	stillTime = d
	t.Cleanup(func() { stillTime = was })
}

// SetTransport replaces what carries requests until the test ends.
func SetTransport(t *testing.T, r http.RoundTripper) {
	was := transport
	transport = func() http.RoundTripper { return r }
	t.Cleanup(func() { transport = was })
}

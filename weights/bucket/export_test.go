package bucket

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
)

func init() { firstPause = time.Millisecond }

// SetStillTime sets, until the test ends, the longest time in which a request may transfer no byte.
func SetStillTime(t *testing.T, d time.Duration) {
	was := stillTime
	stillTime = d
	t.Cleanup(func() { stillTime = was })
}

// SetTransport replaces the transport of requests until the test ends.
func SetTransport(t *testing.T, r http.RoundTripper) {
	was := transport
	transport = func() http.RoundTripper { return r }
	t.Cleanup(func() { transport = was })
}

// MakeContainer makes the container of a folder of az://.
func MakeContainer(ctx context.Context, f *Folder) error {
	c, err := f.protocol.(*azure).client("", url.Values{"restype": {"container"}})
	if err != nil {
		return err
	}
	_, err = c.Upload(ctx, streaming.NopCloser(bytes.NewReader(nil)), nil)
	return short(err)
}

// ReadBlobList exports readBlobList for tests.
var ReadBlobList = readBlobList

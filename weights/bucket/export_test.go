package bucket

import (
	"testing"
	"time"
)

func init() { firstPause = time.Millisecond }

// SetAttemptTime sets the time limit of requests until the test ends.
func SetAttemptTime(t *testing.T, d time.Duration) {
	was := attemptTime
	attemptTime = d
	t.Cleanup(func() { attemptTime = was })
}

package bucket

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lowtoggle/lowtoggle/weights"
)

const (
	attempts = 9                // attempts at a request with a temporary error
	longest  = 10 * time.Second // longest pause between attempts
)

// stillTime is the longest time in which a request may transfer no byte. Tests make it shorter.
var stillTime = time.Minute

// kind is the kind of a request. Stores grant permissions for each kind separately.
type kind int

const (
	listing kind = iota
	reading
	writing
	removing
	kinds
)

// firstPause is the pause before the first repetition of a request. The pause doubles after every attempt. Tests make it
// shorter.
var firstPause = 100 * time.Millisecond

// Error describes a request that a store has refused or never received.
type Error struct {
	URL    string // of the object or folder
	Code   string // the store's error code, such as NoSuchBucket; empty without an answer
	Status int    // HTTP status; 0 without an answer
	err    error
	advice string
	again  bool // the same request may succeed later
}

func (e *Error) Error() string {
	what := fmt.Sprint(e.err)
	if e.Code != "" && !strings.Contains(what, e.Code) {
		what += " (" + e.Code + ")"
	}
	s := e.URL + ": " + strings.TrimSuffix(what, ".")
	if e.advice != "" {
		s += ": " + e.advice
	}
	return s
}

func (e *Error) Unwrap() error { return e.err }

// Is makes errors.Is report fs.ErrNotExist for a missing object or bucket, fs.ErrExist for an object that exists already, and
// [weights.ErrUnreachable] if the same request may succeed later.
func (e *Error) Is(target error) bool {
	switch target {
	case weights.ErrUnreachable:
		return e.again
	case fs.ErrNotExist:
		return e.Status == http.StatusNotFound && e.Code != "NoSuchUpload"
	case fs.ErrExist:
		return e.Status == http.StatusPreconditionFailed || e.Code == "ConditionalRequestConflict" || e.Code == "BlobAlreadyExists"
	case fs.ErrPermission:
		return e.Status == http.StatusForbidden || e.Status == http.StatusUnauthorized
	}
	return false
}

// NoBucket reports whether the bucket, or Azure's container, does not exist.
func (e *Error) NoBucket() bool {
	return e != nil && (e.Code == "NoSuchBucket" || e.Code == "ContainerNotFound")
}

// Error codes of expired credentials, and of invalid ones.
var (
	expired = []string{"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"}
	refused = []string{"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "AccessDenied", "AllAccessDisabled", "InvalidSecurity", "NotSignedUp"}
	moved   = []string{"AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException", "InvalidRegion"}
	busy    = []string{"SlowDown", "SlowDownRead", "SlowDownWrite", "RequestTimeout", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests",
		"InternalError", "ServiceUnavailable", "OperationAborted", "BadDigest", "IncompleteBody", "XAmzContentSHA256Mismatch", "InvalidDigest", "Md5Mismatch", "Crc64Mismatch"}
)

// wrap returns the error of a request as an [Error] with a hint; nil stays nil.
func (f *Folder) wrap(k kind, name string, err error) error {
	if err == nil || errors.As(err, new(*Error)) {
		return err
	}
	e := &Error{URL: f.URL(), err: err}
	if name != "" {
		e.URL = f.path(name)
	}
	e.Code, e.Status = f.protocol.failure(err)
	is := func(codes []string) bool { return slices.Contains(codes, e.Code) }
	switch {
	case e.Status == 0 && e.Code == "":
		e.again = !errors.As(err, new(x509.UnknownAuthorityError)) && !errors.As(err, new(x509.HostnameError))
	case e.NoBucket():
		e.advice = fmt.Sprintf("there is no bucket %s: create it first, or give another bucket", f.bucket)
	case is(expired):
		e.again, e.advice = true, "the credentials have expired: renew them, and run the same command again"
	case is(moved) || e.Status == http.StatusMovedPermanently || e.Status == http.StatusTemporaryRedirect:
		e.advice = "the bucket is in another region: set AWS_REGION to the bucket's region"
	case (is(refused) || e.Status == http.StatusForbidden || e.Status == http.StatusUnauthorized) && f.worked[k].Load():
		e.again, e.advice = true, "requests with these credentials were accepted before: check "+f.protocol.credentials()+", and run the same command again"
	case is(refused) || e.Status == http.StatusForbidden || e.Status == http.StatusUnauthorized:
		e.advice = "check " + f.protocol.credentials()
	case is(busy) || e.Status == http.StatusTooManyRequests || e.Status >= 500 && e.Status != http.StatusNotImplemented:
		e.again = true
	}
	return e
}

// repeated reports whether a request is worth repeating. A request with refused credentials is not: the store would refuse it
// again.
func repeated(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.again && e.advice == ""
}

// retry calls request until it succeeds, fails with a permanent error, or has failed attempts times. It cancels an attempt in
// which no byte moves for stillTime.
func (f *Folder) retry(ctx context.Context, k kind, name string, request func(ctx context.Context) error) error {
	pause := firstPause
	for n := 1; ; n++ {
		attempt, end := untilStill(ctx, stillTime)
		err := request(attempt)
		if err != nil && attempt.Err() != nil {
			err = context.Cause(attempt)
		}
		end()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			f.worked[k].Store(true)
			return nil
		}
		if err = f.wrap(k, name, err); !repeated(err) || n == attempts {
			return err
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause = min(2*pause, longest)
	}
}

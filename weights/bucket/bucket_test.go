package bucket_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/fakestore"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/bucket"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, url string) *bucket.Folder {
	t.Helper()
	f, err := bucket.Open(url)
	ok(t, err)
	return f
}

func random(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(b)
	return b
}

// upload writes data in uneven pieces.
func upload(f *bucket.Folder, name string, data []byte) error {
	out := f.Create(context.Background(), name, int64(len(data)))
	for rest := data; len(rest) > 0; {
		n := min(len(rest), 1<<20+7)
		if _, err := out.Write(rest[:n]); err != nil {
			out.Abort()
			return err
		}
		rest = rest[n:]
	}
	return out.Close()
}

// TestFaults: whatever happens to requests, what is read is what was written.
func TestFaults(t *testing.T) {
	for fault := fakestore.Cut; fault <= fakestore.Changed; fault++ {
		t.Run(fault.String(), func(t *testing.T) {
			store := fakestore.New("models")
			faulty := fakestore.NewFaulty(store, 1, 0.3, fault)
			fakestore.Start(t, faulty)
			f := open(t, "s3://models/folder")
			for name, data := range map[string][]byte{"empty": {}, "small": random(1000), "part": random(8 << 20), "parts": random(17<<20 + 5)} {
				ok(t, upload(f, name, data))
				if got := store.Objects("models", "folder/")[name]; got != string(data) {
					t.Errorf("%s: %d bytes were written, not %d, or others", name, len(got), len(data))
				}
				o, err := f.Stat(t.Context(), name)
				ok(t, err)
				got := make([]byte, o.Size)
				ok(t, f.ReadAt(t.Context(), o, got, 0))
				if !bytes.Equal(got, data) {
					t.Errorf("%s: other bytes were read than written", name)
				}
			}
			if faulty.Seen[fault] == 0 {
				t.Error("no request failed")
			}
		})
	}
}

// TestList: all objects are listed, also those of a second page, and removed ones are not.
func TestList(t *testing.T) {
	store := fakestore.New("models")
	fakestore.Start(t, store)
	for i := range 1500 {
		store.Put("models", fmt.Sprintf("folder/%04d", i), nil)
	}
	f := open(t, "s3://models/folder/")
	ok(t, f.Remove(t.Context(), "0000"))
	ok(t, f.Remove(t.Context(), "0000"))
	list, err := f.List(t.Context())
	ok(t, err)
	if len(list) != 1499 || list[0].Path != "0001" || list[1498].Path != "1499" {
		t.Errorf("%d objects", len(list))
	}
	if _, err := f.Stat(t.Context(), "0000"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed object: %v", err)
	}
}

// TestNoObject: an upload that is given up, or that is too short, leaves no object and no upload.
func TestNoObject(t *testing.T) {
	store := fakestore.New("models")
	fakestore.Start(t, store)
	f := open(t, "s3://models/folder")
	out := f.Create(t.Context(), "short", 20<<20)
	_, err := out.Write(random(10 << 20))
	ok(t, err)
	if err := out.Close(); err == nil {
		t.Error("a short upload was closed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	out = f.Create(ctx, "cancelled", 40<<20)
	_, err = out.Write(random(10 << 20))
	ok(t, err)
	cancel()
	if _, err = out.Write(random(30 << 20)); !errors.Is(err, context.Canceled) {
		t.Errorf("after the context ended: %v", err)
	}
	out.Abort()
	if left := store.Objects("models", ""); len(left) != 0 || store.Uploads() != 0 {
		t.Errorf("%d objects and %d uploads are left", len(left), store.Uploads())
	}
}

// TestChanged: an object that changes between two reads is an error, not a mixture.
func TestChanged(t *testing.T) {
	store := fakestore.New("models")
	fakestore.Start(t, store)
	store.Put("models", "f/x", random(100))
	f := open(t, "s3://models/f")
	o, err := f.Stat(t.Context(), "x")
	ok(t, err)
	store.Put("models", "f/x", random(200)[100:])
	if err := f.ReadAt(t.Context(), o, make([]byte, 10), 0); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Error(err)
	}
}

// TestRefused: errors of buckets say what to do, and whether the same command may help.
func TestRefused(t *testing.T) {
	fakestore.Start(t, fakestore.New("models"))
	ctx := t.Context()
	for _, c := range []struct {
		url, want string
		is        error
		write     bool
	}{
		{url: "s3://none/f", want: "there is no bucket none", is: fs.ErrNotExist},
		{url: "s3://elsewhere/f", want: "another region: set AWS_REGION"},
		{url: "s3://readonly/f", want: "the credentials (AWS_ACCESS_KEY_ID", is: fs.ErrPermission, write: true},
	} {
		f := open(t, c.url)
		_, err := f.List(ctx)
		if c.write {
			ok(t, err) // reading is allowed, which says nothing of writing
			err = f.Write(ctx, "x", nil)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) || errors.Is(err, weights.ErrUnreachable) {
			t.Errorf("%s: %v", c.url, err)
		}
	}
	f := open(t, "s3://expiring/f")
	for range 30 {
		if err := f.Write(ctx, "x", nil); err != nil {
			if !errors.Is(err, weights.ErrUnreachable) || !strings.Contains(err.Error(), "have expired: renew them") {
				t.Error(err)
			}
			return
		}
	}
	t.Error("the credentials did not expire")
}

// TestURLs: what is no folder of a bucket is refused with advice.
func TestURLs(t *testing.T) {
	for url, want := range map[string]string{
		"az://models/f": "gateway", "ftp://models/f": "there is no store ftp://", "s3:///f": "give s3://bucket/folder", "s3://models/f?x=1": "give s3://bucket/folder",
	} {
		if _, err := bucket.Open(url); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
	}
	f := open(t, "s3://models/one/two.safetensors/")
	parent, name := f.Parent()
	if f.URL() != "s3://models/one/two.safetensors" || parent.URL() != "s3://models/one" || name != "two.safetensors" {
		t.Errorf("%s: %s, %s", f.URL(), parent.URL(), name)
	}
}

// TestAliases: all spellings of one folder have one URL, which names the same folder again.
func TestAliases(t *testing.T) {
	for url, want := range map[string]string{
		"s3://models//source":        "s3://models/source",
		"s3://models/sourc%65/":      "s3://models/source",
		"S3://models///source//":     "s3://models/source",
		"s3://models/a b/50%25/x%3F": "s3://models/a%20b/50%25/x%3F",
		"s3://models/":               "s3://models",
		"s3://models/a//b":           "s3://models/a//b", // another folder than a/b
	} {
		if got := open(t, url).URL(); got != want {
			t.Errorf("%s: %s, not %s", url, got, want)
		}
		if got := open(t, want).URL(); got != want {
			t.Errorf("%s: opened again it is %s", want, got)
		}
	}
}

// lateStore answers the first request for a list when the second one is answered.
type lateStore struct {
	http.Handler
	lists       atomic.Int64
	first, late chan struct{}
}

func (s *lateStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("list-type") {
		switch s.lists.Add(1) {
		case 1:
			defer close(s.late)
			<-s.first
		case 2:
			close(s.first)
			<-s.late
		}
	}
	s.Handler.ServeHTTP(w, r)
}

// TestLateList: the answer to an attempt that was given up is not used. The race detector sees where it is.
func TestLateList(t *testing.T) {
	bucket.SetStillTime(t, 500*time.Millisecond)
	for range 4 {
		store := fakestore.New("models")
		store.Put("models", "folder/x", nil)
		late := &lateStore{Handler: store, first: make(chan struct{}), late: make(chan struct{})}
		fakestore.Start(t, late)
		f := open(t, "s3://models/folder")
		list, err := f.List(t.Context())
		ok(t, err)
		if len(list) != 1 || late.lists.Load() != 2 {
			t.Errorf("%d objects after %d requests", len(list), late.lists.Load())
		}
		for range 3 {
			_, err = f.Stat(t.Context(), "x")
			ok(t, err)
		}
	}
}

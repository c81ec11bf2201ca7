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

// eachProtocol runs a test with the URL scheme of each protocol.
func eachProtocol(t *testing.T, law func(t *testing.T, scheme string)) {
	for _, scheme := range []string{"s3", "az"} {
		t.Run(scheme, func(t *testing.T) { law(t, scheme) })
	}
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

// TestFaults: whichever requests fail, the bytes that are read are those that were written.
func TestFaults(t *testing.T) {
	eachProtocol(t, func(t *testing.T, scheme string) {
		for fault := fakestore.Cut; fault <= fakestore.Changed; fault++ {
			t.Run(fault.String(), func(t *testing.T) { testFault(t, scheme, fault) })
		}
	})
}

func testFault(t *testing.T, scheme string, fault fakestore.Fault) {
	store := fakestore.New("models")
	faulty := fakestore.NewFaulty(store, 1, 0.3, fault)
	fakestore.Start(t, faulty)
	keepsBytes(t, open(t, scheme+"://models/folder"), store)
	if faulty.Seen[fault] == 0 {
		t.Error("no request failed")
	}
}

// keepsBytes checks that f reads what it has written, and that the store holds it. A nil store is not checked.
func keepsBytes(t *testing.T, f *bucket.Folder, store *fakestore.Server) {
	t.Helper()
	for name, data := range map[string][]byte{"empty": {}, "small": random(1000), "part": random(8 << 20), "parts": random(17<<20 + 5)} {
		ok(t, upload(f, name, data))
		if store != nil && store.Objects("models", "folder/")[name] != string(data) {
			t.Errorf("%s: the store holds other bytes than were written", name)
		}
		o, err := f.Stat(t.Context(), name)
		ok(t, err)
		got := make([]byte, o.Size)
		ok(t, f.ReadAt(t.Context(), o, got, 0))
		if !bytes.Equal(got, data) {
			t.Errorf("%s: other bytes were read than written", name)
		}
	}
}

// TestList: all objects are listed, including a second page's, and removed objects are not.
func TestList(t *testing.T) {
	eachProtocol(t, func(t *testing.T, scheme string) {
		store := fakestore.New("models")
		fakestore.Start(t, store)
		for i := range 1500 {
			store.Put("models", fmt.Sprintf("folder/%04d", i), []byte("123"))
		}
		f := open(t, scheme+"://models/folder/")
		ok(t, f.Remove(t.Context(), "0000"))
		ok(t, f.Remove(t.Context(), "0000"))
		list, err := f.List(t.Context())
		ok(t, err)
		if len(list) != 1499 || list[0].Path != "0001" || list[1498].Path != "1499" {
			t.Errorf("%d objects", len(list))
		}
		o, err := f.Stat(t.Context(), "0001")
		ok(t, err)
		if o != list[0] || o.Size != 3 || o.Version == "" {
			t.Errorf("the list has %v, the object is %v", list[0], o)
		}
		if _, err := f.Stat(t.Context(), "0000"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a removed object: %v", err)
		}
	})
}

// TestNames: for every key, the same object is written, listed, read and removed.
func TestNames(t *testing.T) {
	eachProtocol(t, func(t *testing.T, scheme string) {
		store := fakestore.New("models")
		fakestore.Start(t, store)
		keepsNames(t, open(t, scheme+"://models/a folder/50%25//x%3Fy"), func(name string) string {
			return store.Objects("models", "a folder/50%//x?y/")[name]
		})
	})
}

// keepsNames checks that objects with unusual names are found under their names. The content of each object is its name.
func keepsNames(t *testing.T, f *bucket.Folder, stored func(name string) string) {
	t.Helper()
	for _, name := range []string{"plain", "a b+c", "100%", "?comp=list", "#1", "ä/€", "a&b=c", "x//y"} {
		ok(t, f.Write(t.Context(), name, []byte(name)))
		if got := stored(name); got != name {
			t.Errorf("%q is not written under its name", name)
		}
		list, err := f.List(t.Context())
		ok(t, err)
		data, err := f.Read(t.Context(), name, 100)
		if len(list) != 1 || list[0].Path != name || err != nil || string(data) != name {
			t.Errorf("%q: the list has %v; read %q, %v", name, list, data, err)
		}
		ok(t, f.Remove(t.Context(), name))
	}
	list, err := f.List(t.Context())
	if err != nil || len(list) > 0 {
		t.Errorf("%v are left, %v", list, err)
	}
}

// TestWriteNew: an object that exists is not replaced.
func TestWriteNew(t *testing.T) {
	eachProtocol(t, func(t *testing.T, scheme string) {
		store := fakestore.New("models")
		fakestore.Start(t, store)
		f := open(t, scheme+"://models/folder")
		ok(t, f.WriteNew(t.Context(), "x", []byte("first")))
		if err := f.WriteNew(t.Context(), "x", []byte("second")); !errors.Is(err, fs.ErrExist) {
			t.Errorf("an object that exists: %v", err)
		}
		if got := store.Objects("models", "folder/")["x"]; got != "first" {
			t.Errorf("the object is %q", got)
		}
	})
}

// TestSameUpload: two concurrent uploads of the same bytes under one name both succeed. An upload of other bytes does not mix
// with them.
func TestSameUpload(t *testing.T) {
	eachProtocol(t, func(t *testing.T, scheme string) {
		store := fakestore.New("models")
		fakestore.Start(t, store)
		f := open(t, scheme+"://models/folder")
		const n = 20 << 20
		data, other := random(n), bytes.Repeat([]byte("other"), n/5)
		a, b, c := f.Create(t.Context(), "x", n), f.Create(t.Context(), "x", n), f.Create(t.Context(), "x", n)
		half := func(out weights.Output, half []byte) {
			_, err := out.Write(half)
			ok(t, err)
		}
		half(c, other[:n/2])
		half(a, data[:n/2])
		half(b, data[:n/2])
		half(a, data[n/2:])
		ok(t, a.Close())
		half(b, data[n/2:])
		ok(t, b.Close())
		half(c, other[n/2:])
		err := c.Close()
		if got := store.Objects("models", "folder/")["x"]; err == nil && got != string(other) || err != nil && got != string(data) {
			t.Errorf("the object is a mixture; the last upload ended with %v", err)
		}
	})
}

// TestNoObject: an upload that is cancelled or too short leaves no object and no upload.
func TestNoObject(t *testing.T) {
	eachProtocol(t, func(t *testing.T, scheme string) {
		store := fakestore.New("models")
		fakestore.Start(t, store)
		f := open(t, scheme+"://models/folder")
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
	})
}

// TestChanged: an object that changes between two reads is an error, not a mixture.
func TestChanged(t *testing.T) {
	eachProtocol(t, func(t *testing.T, scheme string) {
		store := fakestore.New("models")
		fakestore.Start(t, store)
		store.Put("models", "f/x", random(100))
		f := open(t, scheme+"://models/f")
		o, err := f.Stat(t.Context(), "x")
		ok(t, err)
		store.Put("models", "f/x", random(200)[100:])
		if err := f.ReadAt(t.Context(), o, make([]byte, 10), 0); err == nil || !strings.Contains(err.Error(), "changed while") {
			t.Error(err)
		}
	})
}

// TestRefused: errors of buckets have advice, and report whether the same command may succeed later.
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
		{url: "az://none/f", want: "there is no bucket none", is: fs.ErrNotExist},
		{url: "az://readonly/f", want: "the credentials (AZURE_STORAGE_KEY", is: fs.ErrPermission, write: true},
	} {
		f := open(t, c.url)
		_, err := f.List(ctx)
		if c.write {
			ok(t, err) // permission to read does not mean permission to write
			err = f.Write(ctx, "x", nil)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) || errors.Is(err, weights.ErrUnreachable) {
			t.Errorf("%s: %v", c.url, err)
		}
	}
	for scheme, want := range map[string]string{"s3": "have expired: renew them", "az": "were accepted before: check the credentials (AZURE_STORAGE_KEY"} {
		fakestore.Start(t, fakestore.New())
		f := open(t, scheme+"://expiring/f")
		var err error
		for range 30 {
			if err = f.Write(ctx, "x", nil); err != nil {
				break
			}
		}
		if !errors.Is(err, weights.ErrUnreachable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: after credentials have expired: %v", scheme, err)
		}
	}
}

// TestURLs: a URL that is no folder of a bucket is refused with advice.
func TestURLs(t *testing.T) {
	fakestore.Start(t, fakestore.New())
	for url, want := range map[string]string{
		"abfs://models@account/f": "give az://container/folder",
		"az://UPPER/f":            "lower-case",
		"az://a--b/f":             "single hyphens",
		"ftp://models/f":          "ftp:// is not supported",
		"0://":                    "not a valid URL (first path segment in URL cannot contain colon): give a path",
		"s3:///f":                 "give s3://bucket/folder",
		"s3://models/f?x=1":       "give s3://bucket/folder",
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
	fakestore.Start(t, fakestore.New())
	for url, want := range map[string]string{
		"s3://models//source":        "s3://models/source",
		"s3://models/sourc%65/":      "s3://models/source",
		"S3://models///source//":     "s3://models/source",
		"s3://models/a b/50%25/x%3F": "s3://models/a%20b/50%25/x%3F",
		"s3://models/":               "s3://models",
		"s3://models/a//b":           "s3://models/a//b", // another folder than a/b
		"AZ://models//a b/":          "az://models/a%20b",
	} {
		if got := open(t, url).URL(); got != want {
			t.Errorf("%s: %s, not %s", url, got, want)
		}
		if got := open(t, want).URL(); got != want {
			t.Errorf("%s: opened again it is %s", want, got)
		}
	}
}

// lateStore answers the first list request only after the second list request.
type lateStore struct {
	http.Handler
	lists       atomic.Int64
	first, late chan struct{}
}

func (s *lateStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("list-type") || r.URL.Query().Get("comp") == "list" {
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

// TestLateList: the answer to a cancelled attempt is not used. If it were used, the race detector would report an error.
func TestLateList(t *testing.T) {
	eachProtocol(t, func(t *testing.T, scheme string) {
		bucket.SetStillTime(t, 500*time.Millisecond)
		for range 4 {
			store := fakestore.New("models")
			store.Put("models", "folder/x", nil)
			late := &lateStore{Handler: store, first: make(chan struct{}), late: make(chan struct{})}
			fakestore.Start(t, late)
			f := open(t, scheme+"://models/folder")
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
	})
}

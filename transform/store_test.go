package transform_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/fakestore"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/bucket"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// stored is a model in a store, a plan for it, and the files of a single run on a disk.
type stored struct {
	partly
	store  *fakestore.Server
	scheme string // of URLs; s3 unless a test sets another one
}

// named gives conversions of copies of a model the same model card.
var named = transform.FolderOptions{BaseModel: "base"}

// inStore puts a small model into a store that handler serves.
func inStore(t *testing.T, o synth.Options, handler func(*fakestore.Server) http.Handler) stored {
	t.Helper()
	dir := folder(t, config(t, "llama-tiny", `{"num_hidden_layers": 1}`), o)
	ok(t, os.WriteFile(filepath.Join(dir, "README.md"), []byte("# A model\n"), 0o666))
	m := open(t, dir)
	p, err := transform.Plan(t.Context(), m, options(t, "round=2", 0))
	ok(t, err)
	out := filepath.Join(t.TempDir(), "whole")
	_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Folder: named})
	ok(t, err)
	store := fakestore.New("models")
	for name, data := range files(t, dir) {
		store.Put("models", "source/"+name, []byte(data))
	}
	fakestore.Start(t, handler(store))
	return stored{partly{nil, p, files(t, out)}, store, "s3"}
}

// url returns the URL of a folder of the bucket.
func (x *stored) url(name string) string { return x.scheme + "://models/" + name }

func place(t *testing.T, url string) *bucket.Folder {
	t.Helper()
	f, err := bucket.Open(url)
	ok(t, err)
	return f
}

// source opens the model. ctx ends reading it.
func (x *stored) source(t *testing.T, ctx context.Context) (*weights.Model, error) {
	t.Helper()
	return weights.OpenStore(ctx, place(t, x.url("source")), "")
}

func (x *stored) options(t *testing.T) transform.PartOptions {
	return transform.PartOptions{ApplyOptions: transform.ApplyOptions{Version: "1", Store: place(t, x.url("out")), Folder: named}}
}

// same checks that the store holds exactly the files of the single run.
func (x *stored) same(t *testing.T) {
	t.Helper()
	got := x.store.Objects("models", "out/")
	if !maps.Equal(got, x.want) {
		t.Errorf("the store holds %v, a single run wrote %v, or their bytes differ", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(x.want)))
	}
}

// TestStoreParts: from store to store, in any number of parts, with repeated parts and failing requests, the bytes
// are those of a single run on a disk. Before the end, the output is not a model.
func TestStoreParts(t *testing.T) {
	for i, of := range []int{1, 3, 7, 3} {
		scheme := []string{"s3", "s3", "s3", "az"}[i]
		t.Run(fmt.Sprintf("%s in %d", scheme, of), func(t *testing.T) {
			var faulty *fakestore.Faulty
			x := inStore(t, synth.Options{ShardBytes: 30_000}, func(s *fakestore.Server) http.Handler {
				faulty = fakestore.NewFaulty(s, uint64(of), 0.05)
				return faulty
			})
			x.scheme = scheme
			m, err := x.source(t, t.Context())
			ok(t, err)
			defer m.Close()
			before := 0
			for _, n := range append(slices.Repeat([]int{of}, 2), slices.Collect(countdown(of))...) {
				done, err := transform.ApplyPart(t.Context(), m, x.p, x.url("out"), apply.Part{Number: n, Of: of}, x.options(t))
				ok(t, err)
				before += done.Before
				if made, err := weights.OpenStore(t.Context(), place(t, x.url("out")), ""); err == nil || !strings.Contains(err.Error(), "unfinished") {
					t.Errorf("after part %d the output is %v, %v", n, made, err)
				}
			}
			if before == 0 && of < len(m.Shards) {
				t.Error("shards of a repeated part were written again")
			}
			for range 2 {
				_, _, err = transform.FinishParts(t.Context(), m, x.p, x.url("out"), x.options(t))
				ok(t, err)
				x.same(t)
			}
			made, err := weights.OpenStore(t.Context(), place(t, x.url("out")), "")
			ok(t, err)
			defer made.Close()
			report, err := transform.Verify(t.Context(), m, made, transform.VerifyOptions{})
			ok(t, err)
			if !report.OK {
				t.Errorf("verify: %v", report.Problems)
			}
		})
	}
}

// countdown yields n-1 to 1.
func countdown(n int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for n--; n > 0 && yield(n); n-- {
		}
	}
}

// interrupter ends a context at the n-th request. The request is carried out or not.
type interrupter struct {
	http.Handler
	carryOut bool
	left     atomic.Int64
	end      context.CancelFunc
	busy     sync.WaitGroup
}

func (i *interrupter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.busy.Add(1)
	defer i.busy.Done()
	if i.left.Add(-1) == 0 {
		defer i.end()
		if !i.carryOut {
			panic(http.ErrAbortHandler)
		}
	}
	i.Handler.ServeHTTP(w, r)
}

// TestStoreInterrupted: a conversion that ends at any request leaves no model, unless it is whole. Resuming writes no
// finished shard again and gives the bytes of a single run.
func TestStoreInterrupted(t *testing.T) {
	for _, scheme := range []string{"s3", "az"} {
		t.Run(scheme, func(t *testing.T) { testInterrupted(t, scheme) })
	}
}

func testInterrupted(t *testing.T, scheme string) {
	var at *interrupter
	x := inStore(t, synth.Options{ShardBytes: 60_000}, func(s *fakestore.Server) http.Handler {
		at = &interrupter{Handler: s}
		return at
	})
	x.scheme = scheme
	run := func(n int64, resume bool) error {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		at.end = end
		at.left.Store(n)
		m, err := x.source(t, ctx)
		if err != nil {
			return err
		}
		defer m.Close()
		_, err = transform.Apply(ctx, m, x.p, x.url("out"), transform.ApplyOptions{Version: "1", Store: place(t, x.url("out")), Folder: named, Resume: resume})
		return err
	}
	for n := int64(1); ; n++ {
		at.carryOut = n%2 == 0
		err := run((n+1)/2, false)
		at.busy.Wait()
		whole := err == nil
		if !whole {
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("request %d: %v", n, err)
			}
			made, err := weights.OpenStore(t.Context(), place(t, x.url("out")), "")
			if err == nil {
				made.Close()
				if got := x.store.Objects("models", "out/"); got["lowtoggle.json"] != x.want["lowtoggle.json"] {
					t.Errorf("request %d: the output is open to readers and not whole", n)
				}
			}
			missing := int64(20_000) // room for records
			records := x.store.Objects("models", "out/.lowtoggle-parts/records/")
			for name, data := range x.want {
				if _, ok := records[name+".json"]; !ok {
					missing += int64(len(data))
				}
			}
			written := x.store.Written
			ok(t, run(1<<40, true))
			if wrote := x.store.Written - written; wrote > missing {
				t.Errorf("request %d: %d bytes were written where %d were missing", n, wrote, missing)
			}
		}
		x.same(t)
		if whole {
			return
		}
		for name := range x.store.Objects("models", "out/") {
			ok(t, place(t, x.url("out")).Remove(t.Context(), name))
		}
	}
}

// TestStoreKinds: a single file, and conversions between a disk and a store, give the bytes of a run on a disk.
func TestStoreKinds(t *testing.T) {
	x := inStore(t, synth.Options{}, func(s *fakestore.Server) http.Handler { return s })
	m, err := x.source(t, t.Context())
	ok(t, err)
	defer m.Close()
	_, err = transform.Apply(t.Context(), m, x.p, "s3://models/out", transform.ApplyOptions{Version: "1", Store: place(t, "s3://models/out"), Folder: named})
	ok(t, err)
	x.same(t)
	// Between stores of two protocols, which hold the same objects in this test.
	for name := range x.store.Objects("models", "out/") {
		ok(t, place(t, "az://models/out").Remove(t.Context(), name))
	}
	_, err = transform.Apply(t.Context(), m, x.p, "az://models/out", transform.ApplyOptions{Version: "1", Store: place(t, "az://models/out"), Folder: named})
	ok(t, err)
	x.same(t)
	out := filepath.Join(t.TempDir(), "out")
	_, err = transform.Apply(t.Context(), m, x.p, out, transform.ApplyOptions{Folder: named})
	ok(t, err)
	if !maps.Equal(files(t, out), x.want) {
		t.Error("from a store to a disk: other files")
	}
	again, err := transform.Plan(t.Context(), m, options(t, "round=2", 0))
	ok(t, err)
	a, err := x.p.Encode()
	ok(t, err)
	b, err := again.Encode()
	ok(t, err)
	if string(a) != string(b) {
		t.Error("the plan of a model in a store is another one")
	}
	// An existing output is an error, also if it is not a conversion.
	_, err = transform.Apply(t.Context(), m, x.p, "s3://models/source", transform.ApplyOptions{Version: "1", Store: place(t, "s3://models/source"), Folder: named})
	if !errors.Is(err, apply.ErrOut) {
		t.Errorf("the source as the output: %v", err)
	}
	// Nothing is written inside the source, for any spelling of the URLs.
	before := x.store.Objects("models", "")
	for _, out := range []string{"s3://models/source/sub", "s3://models//source/sub", "s3://models/sourc%65/sub", "S3://models/source/sub/"} {
		for _, from := range []string{"s3://models/source", "s3://models//source/", "s3://models/sourc%65"} {
			m, err := weights.OpenStore(t.Context(), place(t, from), "")
			ok(t, err)
			defer m.Close()
			_, err = transform.Apply(t.Context(), m, x.p, out, transform.ApplyOptions{Version: "1", Store: place(t, out), Folder: named})
			if !errors.Is(err, apply.ErrOut) {
				t.Errorf("from %s to %s: %v", from, out, err)
			}
			_, err = transform.ApplyPart(t.Context(), m, x.p, out, apply.Part{Number: 1, Of: 1}, transform.PartOptions{ApplyOptions: transform.ApplyOptions{Version: "1", Store: place(t, out)}})
			if !errors.Is(err, apply.ErrOut) {
				t.Errorf("a part from %s to %s: %v", from, out, err)
			}
		}
	}
	if !maps.Equal(x.store.Objects("models", ""), before) {
		t.Error("a refused conversion has written objects")
	}
}

// meanwhile is a store that calls a function before the first object is written, and that may write no shard.
type meanwhile struct {
	*bucket.Folder
	first sync.Once
	do    func()
	stop  context.CancelFunc // nil: shards are written
}

func (m *meanwhile) Write(ctx context.Context, name string, data []byte) error {
	m.first.Do(m.do)
	return m.Folder.Write(ctx, name, data)
}

func (m *meanwhile) Create(ctx context.Context, name string, n int64) weights.Output {
	if m.stop != nil {
		m.stop()
	}
	return m.Folder.Create(ctx, name, n)
}

// TestStoreTwoStarters: of two conversions with different plans that begin at the same time, one continues and can be
// resumed with its plan. The other one gets an error.
func TestStoreTwoStarters(t *testing.T) {
	x := inStore(t, synth.Options{ShardBytes: 60_000}, func(s *fakestore.Server) http.Handler { return s })
	m, err := x.source(t, t.Context())
	ok(t, err)
	defer m.Close()
	other, err := transform.Plan(t.Context(), m, options(t, "round=3", 0))
	ok(t, err)
	run := func(ctx context.Context, p *plan.Plan, s apply.Store, resume bool) error {
		_, err := transform.Apply(ctx, m, p, "s3://models/out", transform.ApplyOptions{Version: "1", Store: s, Folder: named, Resume: resume})
		return err
	}
	quicker := func() {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		if err := run(ctx, x.p, &meanwhile{Folder: place(t, "s3://models/out"), do: func() {}, stop: end}, false); !errors.Is(err, context.Canceled) {
			t.Errorf("the quicker one: %v", err)
		}
	}
	err = run(t.Context(), other, &meanwhile{Folder: place(t, "s3://models/out"), do: quicker}, false)
	if !errors.Is(err, apply.ErrOther) || strings.Contains(err.Error(), "resume to continue") {
		t.Errorf("the slower one: %v", err)
	}
	p, err := apply.UnfinishedIn(t.Context(), place(t, "s3://models/out"))
	ok(t, err)
	got, err := p.Encode()
	ok(t, err)
	want, err := x.p.Encode()
	ok(t, err)
	if string(got) != string(want) {
		t.Fatal("the stored plan does not belong to the conversion in progress")
	}
	ok(t, run(t.Context(), p, place(t, "s3://models/out"), true))
	x.same(t)
}

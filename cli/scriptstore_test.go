//go:build unix

package cli

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lowtoggle/lowtoggle/internal/fakestore"
)

// stores are the object stores of scripts, by the script's folder.
var stores sync.Map

// scriptStore is store BUCKET.... It starts an object store in memory for the following commands.
func scriptStore(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, "BUCKET ...")
	store := fakestore.New(args...)
	server := httptest.NewServer(store)
	ts.Defer(server.Close)
	for name, value := range fakestore.Environment(server.URL) {
		ts.Setenv(name, value)
	}
	stores.Store(ts.Getenv("WORK"), store)
}

func storeOf(ts *testscript.TestScript) *fakestore.Server {
	store, ok := stores.Load(ts.Getenv("WORK"))
	if !ok {
		ts.Fatalf("there is no store")
	}
	return store.(*fakestore.Server)
}

// scriptPut is put FOLDER BUCKET/PREFIX, which stores a folder's files.
func scriptPut(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, "FOLDER BUCKET/PREFIX")
	bucket, prefix, _ := strings.Cut(args[1], "/")
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(ts.MkAbs(args[0]), e.Name()))
		ts.Check(err)
		storeOf(ts).Put(bucket, prefix+"/"+e.Name(), data)
	}
}

// scriptGet is get BUCKET[/PREFIX] FOLDER. It writes the objects below a prefix into a new folder.
func scriptGet(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, "BUCKET/PREFIX FOLDER")
	bucket, prefix, _ := strings.Cut(args[0], "/")
	if prefix != "" {
		prefix += "/"
	}
	for name, data := range storeOf(ts).Objects(bucket, prefix) {
		path := filepath.Join(ts.MkAbs(args[1]), name)
		ts.Check(os.MkdirAll(filepath.Dir(path), 0o777))
		ts.Check(os.WriteFile(path, []byte(data), 0o666))
	}
}

package bucket_test

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/fakestore"
	"github.com/lowtoggle/lowtoggle/weights/bucket"
)

var azurite = flag.String("azurite", "", "path of azurite-blob, from npm install azurite: run the laws of az:// against it")

// TestAzurite runs the tests of az:// against Microsoft's emulator of Azure Blob Storage, which checks signatures and
// conditions.
func TestAzurite(t *testing.T) {
	if *azurite == "" {
		t.Skip("needs -azurite PATH")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	place := listener.Addr().String()
	ok(t, listener.Close())
	_, port, err := net.SplitHostPort(place)
	ok(t, err)
	// The emulator knows fewer versions of the protocol than the service, and no CRC-64.
	server := exec.CommandContext(t.Context(), *azurite, "--blobPort", port, "--location", t.TempDir(), "--skipApiVersionCheck", "--loose", "--disableTelemetry", "--silent")
	server.Env = append(server.Environ(), "AZURITE_ACCOUNTS=account:"+base64.StdEncoding.EncodeToString([]byte("a key")))
	server.Cancel = func() error { return server.Process.Kill() }
	ok(t, server.Start())
	t.Cleanup(func() { server.Wait() })

	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: place})
	faulty := fakestore.NewFaulty(proxy, 1, 0)
	front := httptest.NewServer(faulty)
	defer front.Close()
	connect := func(endpoint string) {
		for _, name := range []string{"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SERVICE_ENDPOINT"} {
			t.Setenv(name, "")
		}
		t.Setenv("AZURE_STORAGE_CONNECTION_STRING", fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=account;AccountKey=%s;BlobEndpoint=%s/account;",
			base64.StdEncoding.EncodeToString([]byte("a key")), endpoint))
	}
	connect("http://" + place)
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	for err = errors.New("not started"); err != nil; err = bucket.MakeContainer(ctx, open(t, "az://models")) {
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	f := open(t, "az://models/folder")
	keepsNames(t, open(t, "az://models/a folder/50%25/x%3Fy"), func(name string) string { return name })
	ok(t, f.WriteNew(t.Context(), "x", []byte("first")))
	if err := f.WriteNew(t.Context(), "x", []byte("second")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("an object that exists: %v", err)
	}
	o, err := f.Stat(t.Context(), "x")
	ok(t, err)
	ok(t, f.Write(t.Context(), "x", []byte("other")))
	if err := f.ReadAt(t.Context(), o, make([]byte, 2), 0); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("a changed object: %v", err)
	}
	if _, err := f.Stat(t.Context(), "absent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an absent object: %v", err)
	}
	if err := open(t, "az://absent/folder").Check(t.Context()); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "there is no bucket absent") {
		t.Errorf("an absent container: %v", err)
	}
	connect(front.URL)
	for fault := fakestore.Cut; fault < fakestore.Changed; fault++ { // which Azurite does not notice
		t.Run(fault.String(), func(t *testing.T) {
			faulty.Only = []fakestore.Fault{fault}
			faulty.Set(0.3, false)
			keepsBytes(t, open(t, "az://models/"+fault.String()), nil)
			if faulty.Seen[fault] == 0 {
				t.Error("no request failed")
			}
		})
	}
	faulty.Set(0, false)
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "")
	t.Setenv("AZURE_STORAGE_ACCOUNT", "account")
	t.Setenv("AZURE_STORAGE_SERVICE_ENDPOINT", "http://"+place+"/account")
	t.Setenv("AZURE_STORAGE_KEY", base64.StdEncoding.EncodeToString([]byte("another key")))
	if err := open(t, "az://models").Check(t.Context()); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "check the credentials") {
		t.Errorf("a wrong key: %v", err)
	}
}

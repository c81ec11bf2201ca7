package bucket_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/fakestore"
	"github.com/lowtoggle/lowtoggle/weights/bucket"
)

// setAzure sets the variables of Azure's tools. Variables that are not given are empty.
func setAzure(t *testing.T, values map[string]string) {
	for _, name := range []string{"ACCOUNT", "KEY", "SAS_TOKEN", "CONNECTION_STRING", "SERVICE_ENDPOINT"} {
		t.Setenv("AZURE_STORAGE_"+name, values[name])
	}
}

// TestAzureAccount: each kind of credentials works, and incomplete ones are refused with advice.
func TestAzureAccount(t *testing.T) {
	store := fakestore.New("models")
	store.Put("models", "f/x", []byte("data"))
	server := httptest.NewServer(store)
	defer server.Close()
	endpoint, key := server.URL+"/"+fakestore.Key, base64.StdEncoding.EncodeToString([]byte(fakestore.Secret))
	for name, c := range map[string]struct {
		values map[string]string
		want   string // error; empty: the object is read
	}{
		"key":                    {map[string]string{"ACCOUNT": fakestore.Key, "KEY": key, "SERVICE_ENDPOINT": endpoint}, ""},
		"signature":              {map[string]string{"SAS_TOKEN": "?" + fakestore.SAS, "SERVICE_ENDPOINT": endpoint}, ""},
		"string with key":        {map[string]string{"CONNECTION_STRING": fmt.Sprintf("AccountName=%s; AccountKey=%s;BlobEndpoint=%s/", fakestore.Key, key, endpoint)}, ""},
		"string with signature":  {map[string]string{"CONNECTION_STRING": fmt.Sprintf("BlobEndpoint=%s;SharedAccessSignature=%s", endpoint, fakestore.SAS)}, ""},
		"string before the rest": {map[string]string{"CONNECTION_STRING": fmt.Sprintf("AccountName=%s;AccountKey=%s;BlobEndpoint=%s", fakestore.Key, key, endpoint), "ACCOUNT": "other", "KEY": "AAAA"}, ""},
		"wrong signature":        {map[string]string{"SAS_TOKEN": "sig=x", "SERVICE_ENDPOINT": endpoint}, "check the credentials (AZURE_STORAGE_KEY"},
		"nothing":                {nil, "set AZURE_STORAGE_ACCOUNT to its name"},
		"key alone":              {map[string]string{"KEY": key, "SERVICE_ENDPOINT": endpoint}, "a key, but no account"},
		"cut key":                {map[string]string{"ACCOUNT": fakestore.Key, "KEY": "abc", "SERVICE_ENDPOINT": endpoint}, "is not base64"},
		"endpoint":               {map[string]string{"ACCOUNT": "a", "SERVICE_ENDPOINT": "store.example"}, "is not a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			setAzure(t, c.values)
			f, err := bucket.Open("az://models/f")
			var data []byte
			if err == nil {
				data, err = f.Read(t.Context(), "x", 100)
			}
			switch {
			case c.want == "" && (err != nil || string(data) != "data"):
				t.Errorf("%q, %v", data, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestIdentity: a machine's identity gives one token for many requests. An identity that gives none is an error, at once.
func TestIdentity(t *testing.T) {
	store := fakestore.New("models")
	store.Put("models", "f/x", []byte("data"))
	var asked atomic.Int64
	var refuse atomic.Bool
	mux := http.NewServeMux()
	mux.Handle("/", store)
	mux.HandleFunc("/identity", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if refuse.Load() || r.Header.Get("X-Identity-Header") != "header" {
			http.Error(w, "{}", http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, `{"access_token":%q,"expires_on":"%d","resource":"https://storage.azure.com","token_type":"Bearer"}`, fakestore.Token, time.Now().Add(time.Hour).Unix())
	})
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	bucket.SetTransport(t, server.Client().Transport)
	setAzure(t, map[string]string{"SERVICE_ENDPOINT": server.URL + "/" + fakestore.Key})
	t.Setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
	t.Setenv("IDENTITY_ENDPOINT", server.URL+"/identity")
	t.Setenv("IDENTITY_HEADER", "header")
	refuse.Store(true)
	_, err := open(t, "az://models/f").Read(t.Context(), "x", 100)
	if !errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "the identity and its role") {
		t.Errorf("without a token: %v", err)
	}
	refuse.Store(false)
	asked.Store(0)
	f := open(t, "az://models/f")
	for range 3 {
		data, err := f.Read(t.Context(), "x", 100)
		if err != nil || string(data) != "data" {
			t.Fatalf("%q, %v", data, err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("%d tokens for three requests", n)
	}
}

// FuzzBlobList: no list makes its reader panic, and one that is read has objects of no negative size.
func FuzzBlobList(f *testing.F) {
	f.Add([]byte(`<?xml version="1.0"?><EnumerationResults><Blobs><Blob><Name>a/b</Name><Properties><Content-Length>3</Content-Length><Etag>0x1</Etag></Properties></Blob></Blobs><NextMarker>n</NextMarker></EnumerationResults>`))
	f.Add([]byte(`<EnumerationResults><Blobs><Blob><Name Encoded="true">a%00</Name><Properties><ResourceType>directory</ResourceType></Properties></Blob></Blobs></EnumerationResults>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		found, _, err := bucket.ReadBlobList(data)
		for _, o := range found {
			if err != nil || o.Size < 0 {
				t.Errorf("%v, %v", o, err)
			}
		}
	})
}

// TestBlobList: names that XML cannot hold are decoded, and folders are no objects.
func TestBlobList(t *testing.T) {
	found, next, err := bucket.ReadBlobList([]byte(`<EnumerationResults><Blobs>
<Blob><Name Encoded="true">a%01b</Name><Properties><Content-Length>3</Content-Length><Etag>0x1</Etag></Properties></Blob>
<Blob><Name>100%25</Name><Properties><Content-Length>0</Content-Length><ResourceType>file</ResourceType></Properties></Blob>
<Blob><Name>a</Name><Properties><Content-Length>0</Content-Length><ResourceType>directory</ResourceType></Properties></Blob>
</Blobs><NextMarker>m</NextMarker></EnumerationResults>`))
	ok(t, err)
	if len(found) != 2 || found[0].Path != "a\x01b" || found[0].Size != 3 || found[0].Version != "0x1" || found[1].Path != "100%25" || next != "m" {
		t.Errorf("%v, next %q", found, next)
	}
	for _, data := range []string{"", "<EnumerationResults>", "<html></html>", `<EnumerationResults><Blobs><Blob><Name>a</Name><Properties><Content-Length>-1</Content-Length></Properties></Blob></Blobs></EnumerationResults>`} {
		if _, _, err := bucket.ReadBlobList([]byte(data)); err == nil {
			t.Errorf("%q is a list", data)
		}
	}
}

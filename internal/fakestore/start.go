package fakestore

import (
	"encoding/base64"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Start serves a store on the loopback address until the test ends. It sets the environment variables that name the
// store.
func Start(t testing.TB, store http.Handler) {
	t.Helper()
	server := httptest.NewUnstartedServer(store)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // ignore messages about cut connections
	server.Start()
	t.Cleanup(server.Close)
	for name, value := range Environment(server.URL) {
		t.Setenv(name, value)
	}
}

// Environment returns the environment variables that name a store at a URL.
func Environment(url string) map[string]string {
	return map[string]string{"AWS_ENDPOINT_URL": url, "AWS_ENDPOINT_URL_S3": "", "AWS_ACCESS_KEY_ID": Key, "AWS_SECRET_ACCESS_KEY": Secret,
		"AWS_SESSION_TOKEN": "", "AWS_REGION": "us-east-1", "AWS_PROFILE": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AZURE_STORAGE_SERVICE_ENDPOINT": url + "/" + Key, "AZURE_STORAGE_ACCOUNT": Key, "AZURE_STORAGE_KEY": base64.StdEncoding.EncodeToString([]byte(Secret)),
		"AZURE_STORAGE_SAS_TOKEN": "", "AZURE_STORAGE_CONNECTION_STRING": ""}
}

package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
)

// azureAccount is a storage account with one kind of credentials.
type azureAccount struct {
	endpoint *url.URL
	key      *blob.SharedKeyCredential
	sas      string // a query; empty with other credentials
	identity azcore.TokenCredential
}

// findAzureAccount returns the account and its credentials from the variables that Azure's tools read.
func findAzureAccount(options azcore.ClientOptions) (a azureAccount, err error) {
	name, key, sas, place := os.Getenv("AZURE_STORAGE_ACCOUNT"), os.Getenv("AZURE_STORAGE_KEY"), os.Getenv("AZURE_STORAGE_SAS_TOKEN"), os.Getenv("AZURE_STORAGE_SERVICE_ENDPOINT")
	suffix, scheme := "core.windows.net", "https"
	if s := os.Getenv("AZURE_STORAGE_CONNECTION_STRING"); s != "" {
		name, key, sas, place = "", "", "", ""
		for field := range strings.SplitSeq(s, ";") {
			to := map[string]*string{"AccountName": &name, "AccountKey": &key, "SharedAccessSignature": &sas, "BlobEndpoint": &place,
				"EndpointSuffix": &suffix, "DefaultEndpointsProtocol": &scheme}
			if k, v, _ := strings.Cut(strings.TrimSpace(field), "="); to[k] != nil {
				*to[k] = v
			}
		}
	}
	if place == "" {
		if name == "" {
			return a, errors.New("there is no storage account: set AZURE_STORAGE_ACCOUNT to its name, or AZURE_STORAGE_CONNECTION_STRING")
		}
		place = fmt.Sprintf("%s://%s.blob.%s", scheme, name, suffix)
	}
	a.endpoint, err = url.Parse(place)
	if err != nil || a.endpoint.Host == "" || a.endpoint.Scheme != "http" && a.endpoint.Scheme != "https" {
		return a, fmt.Errorf("the endpoint %q is not a URL: set AZURE_STORAGE_ACCOUNT to an account's name, or AZURE_STORAGE_SERVICE_ENDPOINT to a URL", place)
	}
	switch {
	case key != "" && name == "":
		return a, errors.New("there is a key, but no account: set AZURE_STORAGE_ACCOUNT to the account's name")
	case key != "":
		if a.key, err = blob.NewSharedKeyCredential(name, key); err != nil {
			return a, errors.New("AZURE_STORAGE_KEY, or AccountKey in AZURE_STORAGE_CONNECTION_STRING, is not base64: copy the whole key")
		}
	case sas != "":
		a.sas = strings.TrimLeft(sas, "?")
	default:
		found, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: options})
		if err != nil {
			return a, err
		}
		a.identity = &kept{TokenCredential: found}
	}
	return a, nil
}

// kept keeps a token while the token is valid. Without it, the client of every blob would ask for a token, and some
// credentials, such as az login's, start a program for each token.
type kept struct {
	azcore.TokenCredential
	mu    sync.Mutex
	token azcore.AccessToken
}

// renewBefore is the remaining validity at which a token is replaced.
const renewBefore = 5 * time.Minute

// GetToken implements [azcore.TokenCredential]. A request with claims means that Azure no longer accepts the token.
func (k *kept) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o.Claims == "" && time.Until(k.token.ExpiresOn) > renewBefore {
		return k.token, nil
	}
	token, err := k.TokenCredential.GetToken(ctx, o)
	if err == nil {
		k.token = token
	}
	return token, err
}

package bucket

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/lowtoggle/lowtoggle/weights"
)

// azure is the protocol of Azure Blob Storage.
//
// Azure's Go package for containers imports Apache Arrow, which takes five times as long to compile as everything else
// (bench/storelibraries.txt). So azure uses the library's client for blobs only. It lists a container with the same client:
// it reads the URL of the list as if it were a blob.
type azure struct {
	account   azureAccount
	container string
	options   *blockblob.ClientOptions
}

func openAzure(container string) (protocol, error) {
	if !isContainer(container) {
		return nil, fmt.Errorf("a container's name has 3 to 63 lower-case letters, digits and single hyphens")
	}
	client := azcore.ClientOptions{
		Transport: &http.Client{Transport: watched{transport()}},
		Retry:     policy.RetryOptions{MaxRetries: -1}, // Folder.retry repeats requests
	}
	account, err := findAzureAccount(client)
	return &azure{account, container, &blockblob.ClientOptions{ClientOptions: client}}, err
}

// isContainer reports whether a name is a container's.
func isContainer(name string) bool {
	if name == "$root" || name == "$web" {
		return true
	}
	valid := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' }
	return len(name) >= 3 && len(name) <= 63 && strings.IndexFunc(name, func(r rune) bool { return !valid(r) }) < 0 &&
		!strings.Contains("-"+name+"-", "--")
}

// client returns a client of the blob with a key. If key is empty, it returns a client of the container's URL with query.
func (a *azure) client(key string, query url.Values) (*blockblob.Client, error) {
	u := a.account.endpoint.JoinPath(a.container)
	if key != "" { // not by JoinPath, which would remove // and .. from a key
		path := url.URL{Path: "/" + key}
		u.RawPath = u.EscapedPath() + path.EscapedPath()
		u.Path += path.Path
	}
	u.RawQuery = strings.Trim(query.Encode()+"&"+a.account.sas, "&")
	switch {
	case a.account.key != nil:
		return blockblob.NewClientWithSharedKeyCredential(u.String(), a.account.key, a.options)
	case a.account.identity != nil:
		return blockblob.NewClient(u.String(), a.account.identity, a.options)
	}
	return blockblob.NewClientWithNoCredential(u.String(), a.options)
}

func (a *azure) credentials() string {
	return "the credentials (AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_CONNECTION_STRING), or the identity and its role, such as Storage Blob Data Contributor"
}

// refusal is the store's error answer with a short text. The library's own text fills many lines.
type refusal struct{ *azcore.ResponseError }

func (r refusal) Unwrap() error { return r.ResponseError }

func (r refusal) Error() string {
	var answer struct {
		Message                   string
		AuthenticationErrorDetail string
	}
	if body, err := runtime.Payload(r.RawResponse); err == nil {
		xml.Unmarshal(body, &answer)
	}
	text, _, _ := strings.Cut(answer.Message, "\n") // lines with the request's number and time follow
	for _, s := range []string{text, http.StatusText(r.StatusCode), "status " + strconv.Itoa(r.StatusCode)} {
		if s = strings.TrimSpace(s); s != "" {
			return strings.TrimSpace(s + " " + answer.AuthenticationErrorDetail)
		}
	}
	return ""
}

// noToken is the error of credentials from which no token was obtained, with a short text.
type noToken struct{ error }

func (n noToken) Unwrap() error { return n.error }

func (n noToken) Error() string {
	text, _, _ := strings.Cut(n.error.Error(), "\n")
	return text
}

// short replaces the long text of an error of the library by a short one.
func short(err error) error {
	if answer, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return refusal{answer}
	}
	if _, ok := errors.AsType[interface {
		error
		NonRetriable()
	}](err); ok {
		return noToken{err}
	}
	return err
}

func (a *azure) failure(err error) (code string, status int) {
	if answer, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return answer.ErrorCode, answer.StatusCode
	}
	if errors.As(err, new(noToken)) {
		return "", http.StatusUnauthorized
	}
	return "", 0
}

// mostListBytes is more than a list of [pageKeys] blobs needs. A blob's name has at most 1024 characters.
const mostListBytes = 64 << 20

func (a *azure) list(ctx context.Context, prefix, after string, most int) ([]weights.Object, string, error) {
	query := url.Values{"restype": {"container"}, "comp": {"list"}, "maxresults": {strconv.Itoa(most)}}
	for name, v := range map[string]string{"prefix": prefix, "marker": after} {
		if v != "" {
			query.Set(name, v)
		}
	}
	c, err := a.client("", query)
	if err != nil {
		return nil, "", err
	}
	answer, err := c.DownloadStream(ctx, nil)
	if err != nil {
		return nil, "", short(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, mostListBytes+1))
	if err != nil {
		return nil, "", err
	}
	return readBlobList(data)
}

// readBlobList reads an answer to a request for a list.
func readBlobList(data []byte) (found []weights.Object, next string, err error) {
	if len(data) > mostListBytes {
		return nil, "", fmt.Errorf("the store's list has more than %d MiB", mostListBytes>>20)
	}
	var list struct {
		XMLName xml.Name `xml:"EnumerationResults"`
		Blobs   struct {
			Blob []struct {
				Name struct {
					Encoded bool   `xml:",attr"` // the name holds characters that XML does not allow
					Text    string `xml:",chardata"`
				}
				Properties struct {
					Size         int64 `xml:"Content-Length"`
					Etag         string
					ResourceType string // of accounts with folders
				}
			}
		}
		NextMarker string
	}
	if err := xml.Unmarshal(data, &list); err != nil {
		return nil, "", fmt.Errorf("the store's list is cut or malformed: %w", err)
	}
	for _, b := range list.Blobs.Blob {
		name := b.Name.Text
		if b.Name.Encoded {
			if name, err = url.PathUnescape(name); err != nil {
				return nil, "", fmt.Errorf("the store's list has a malformed name: %w", err)
			}
		}
		if b.Properties.Size < 0 {
			return nil, "", fmt.Errorf("the store's list gives %q a negative size, %d bytes", name, b.Properties.Size)
		}
		if b.Properties.ResourceType != "directory" {
			found = append(found, weights.Object{Path: name, Size: b.Properties.Size, Version: version(b.Properties.Etag)})
		}
	}
	return found, list.NextMarker, nil
}

// value returns the value at p, or the zero value if p is nil because a header is missing.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func (a *azure) get(ctx context.Context, o weights.Object, at, n int64) (io.ReadCloser, weights.Object, error) {
	c, err := a.client(o.Path, nil)
	if err != nil {
		return nil, o, err
	}
	options := new(blob.DownloadStreamOptions)
	if n >= 0 {
		options.Range = blob.HTTPRange{Offset: at, Count: n}
	}
	if o.Version != "" {
		options.AccessConditions = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: new(azcore.ETag(`"` + o.Version + `"`))}}
	}
	answer, err := c.DownloadStream(ctx, options)
	return answer.Body, weights.Object{Path: o.Path, Size: value(answer.ContentLength), Version: version(string(value(answer.ETag)))}, short(err)
}

func (a *azure) stat(ctx context.Context, key string) (weights.Object, error) {
	c, err := a.client(key, nil)
	if err != nil {
		return weights.Object{}, err
	}
	answer, err := c.GetProperties(ctx, nil)
	return weights.Object{Path: key, Size: value(answer.ContentLength), Version: version(string(value(answer.ETag)))}, short(err)
}

var blobHeaders = &blob.HTTPHeaders{BlobContentType: new(contentType)}

func (a *azure) put(ctx context.Context, key string, data []byte, fresh bool) error {
	c, err := a.client(key, nil)
	if err != nil {
		return err
	}
	options := &blockblob.UploadOptions{HTTPHeaders: blobHeaders, TransactionalValidation: blob.TransferValidationTypeCRC64(blobSum(data))}
	if fresh {
		options.AccessConditions = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: new(azcore.ETagAny)}}
	}
	_, err = c.Upload(ctx, streaming.NopCloser(bytes.NewReader(data)), options)
	return short(err)
}

func (a *azure) remove(ctx context.Context, key string) error {
	c, err := a.client(key, nil)
	if err != nil {
		return err
	}
	_, err = c.Delete(ctx, nil)
	if code, _ := a.failure(err); code == "BlobNotFound" {
		return nil
	}
	return short(err)
}

// azureUpload is a blob that is written in blocks.
//
// The name of a block is its number and checksum. So two uploads of the same bytes to one blob have the same blocks, and do
// not disturb each other. Uploads of different bytes never mix their blocks.
type azureUpload struct {
	a   *azure
	key string

	mu  sync.Mutex
	ids []string
}

func (a *azure) multipart(key string) multipart { return &azureUpload{a: a, key: key} }

func (u *azureUpload) begin(context.Context) error { return nil }

func (u *azureUpload) part(ctx context.Context, number int, data []byte) error {
	c, err := u.a.client(u.key, nil)
	if err != nil {
		return err
	}
	sum := blobSum(data)
	id := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, uint32(number)), sum))
	_, err = c.StageBlock(ctx, id, streaming.NopCloser(bytes.NewReader(data)), &blockblob.StageBlockOptions{TransactionalValidation: blob.TransferValidationTypeCRC64(sum)})
	if err != nil {
		return short(err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ids = append(u.ids, make([]string, max(0, number-len(u.ids)))...)
	u.ids[number-1] = id
	return nil
}

func (u *azureUpload) complete(ctx context.Context, size int64) error {
	c, err := u.a.client(u.key, nil)
	if err != nil {
		return err
	}
	_, err = c.CommitBlockList(ctx, u.ids, &blockblob.CommitBlockListOptions{HTTPHeaders: blobHeaders})
	return short(err)
}

// abort implements [multipart]. Azure has no request that removes blocks; it removes them after a week.
func (u *azureUpload) abort(context.Context) error { return nil }

var blobPolynomial = crc64.MakeTable(0x9A6C9329AC4BC9B5)

// blobSum returns the CRC-64 that Azure checks.
func blobSum(data []byte) uint64 { return crc64.Checksum(data, blobPolynomial) }

// Package bucket reads and writes models in object stores that speak S3's protocol: Amazon S3, Google Cloud Storage, MinIO, Ceph
// and others.
//
// [Open] takes a URL: s3://bucket/folder, or gs://bucket/folder for Google Cloud Storage. Credentials, region and endpoint come
// from where Amazon's tools look for them: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the shared files, or the machine's role;
// AWS_REGION; AWS_ENDPOINT_URL for other stores. gs:// takes an HMAC key in the same variables.
//
// A request with a temporary error (a cut connection, 503 SlowDown) is repeated with growing pauses, for about half a minute.
// Every part of an upload carries a checksum, and an object appears whole or not at all.
package bucket

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
)

// Folder is a folder of a bucket: the objects whose keys begin with its prefix. It is a [weights.Store]. Its methods may be called
// from several goroutines.
type Folder struct {
	scheme string
	bucket string
	prefix string // empty, or with a slash at the end
	google bool   // Google Cloud Storage, whose checksums differ from S3's
	core   *minio.Core
	worked *[kinds]atomic.Bool // a request of this kind was accepted
}

// Open returns the folder that a URL names. It sends no request. Without credentials requests are anonymous.
func Open(place string) (*Folder, error) {
	u, err := url.Parse(place)
	if err != nil {
		return nil, err
	}
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%s: %s", place, fmt.Sprintf(format, args...))
	}
	endpoint := "https://s3.amazonaws.com"
	switch u.Scheme {
	case "s3":
		for _, name := range []string{"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"} {
			if v := os.Getenv(name); v != "" {
				endpoint = v
				break
			}
		}
	case "gs":
		endpoint = "https://storage.googleapis.com"
	case "az", "abfs", "abfss", "wasb", "wasbs":
		return nil, wrong("Azure's protocol is not supported: put a gateway with S3's protocol in front of it, such as versitygw, and give s3:// (docs/stores.md)")
	default:
		return nil, wrong("there is no store %s://: give a path, s3://bucket/folder or gs://bucket/folder", u.Scheme)
	}
	if u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, wrong("give %s://bucket/folder", u.Scheme)
	}
	if err := s3utils.CheckValidBucketName(u.Host); err != nil {
		return nil, wrong("%v", err)
	}
	at, err := url.Parse(endpoint)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, wrong("the endpoint %q is no URL: set AWS_ENDPOINT_URL to one such as https://store.example", endpoint)
	}
	f := &Folder{scheme: u.Scheme, bucket: u.Host, google: u.Scheme == "gs", worked: new([kinds]atomic.Bool)}
	if key := strings.Trim(u.Path, "/"); key != "" {
		f.prefix = key + "/"
	}
	f.core, err = minio.NewCore(at.Host, &minio.Options{Creds: chain(), Secure: at.Scheme == "https", Region: region(), Transport: watched{transport()}, MaxRetries: 1})
	if err != nil {
		return nil, wrong("%v", err)
	}
	return f, nil
}

// chain returns credentials from the places where Amazon's tools look.
func chain() *credentials.Credentials {
	return credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{},
		&credentials.IAM{Client: &http.Client{Timeout: 2 * time.Second}}})
}

// region returns the bucket's region; empty: the library asks the store.
func region() string {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		if v := os.Getenv(name); v != "" {
			return v
		}
	}
	return ""
}

// transport carries requests. Tests replace it.
var transport = func() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 32
	t.ResponseHeaderTimeout = stillTime
	t.DisableCompression = true // sizes must be the objects' sizes
	t.WriteBufferSize, t.ReadBufferSize = 128<<10, 128<<10
	return t
}

// URL returns the folder's URL without a slash at its end. Folders of the same bucket and prefix have the same URL, however it
// was spelt, because users of [weights.Store] compare URLs.
func (f *Folder) URL() string {
	u := url.URL{Scheme: f.scheme, Host: f.bucket, Path: "/" + f.prefix}
	return strings.TrimRight(u.String(), "/")
}

// Parent returns the folder above, and the last name of this folder's path.
func (f *Folder) Parent() (*Folder, string) {
	g := *f
	key := strings.TrimSuffix(f.prefix, "/")
	i := strings.LastIndexByte(key, '/')
	g.prefix = key[:i+1]
	return &g, key[i+1:]
}

func (f *Folder) key(name string) string { return f.prefix + name }

func (f *Folder) path(name string) string { return f.URL() + "/" + name }

// Check returns an error if the bucket is absent or cannot be read.
func (f *Folder) Check(ctx context.Context) error {
	_, err := f.page(ctx, "", 1)
	return err
}

// Package bucket reads and writes models in object stores: Azure Blob Storage, and stores that speak S3's protocol, such as Amazon
// S3, Google Cloud Storage, MinIO and Ceph.
//
// [Open] takes a URL: s3://bucket/folder, gs://bucket/folder for Google Cloud Storage, or az://container/folder for Azure.
//
// s3:// and gs:// find credentials, region and endpoint as Amazon's tools do. Credentials are in AWS_ACCESS_KEY_ID and
// AWS_SECRET_ACCESS_KEY (for gs://, an HMAC key), in Amazon's shared files, or come from the machine's role. AWS_REGION is
// the region. AWS_ENDPOINT_URL is the endpoint of stores other than Amazon's and Google's.
//
// az:// finds the account and its credentials as Azure's tools do. They are in AZURE_STORAGE_CONNECTION_STRING; or the
// account is in AZURE_STORAGE_ACCOUNT, and the credentials are AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, or an identity (of
// the machine, of the workload, or of az login). AZURE_STORAGE_SERVICE_ENDPOINT is the endpoint of accounts outside Azure's
// public cloud.
//
// A request with a temporary error (a cut connection, 503 SlowDown) is repeated with growing pauses, for about half a minute.
// Every part of an upload carries a checksum. An object appears complete or not at all.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
)

// Folder is a folder of a bucket: the objects whose keys begin with its prefix. It is a [weights.Store]. Its methods may be called
// from several goroutines.
type Folder struct {
	scheme   string
	bucket   string
	prefix   string // empty, or with a slash at the end
	protocol protocol
	worked   *[kinds]atomic.Bool // a request of this kind was accepted
}

// Open returns the folder that a URL names. It sends no request. Without credentials, requests to s3:// and gs:// are anonymous.
func Open(place string) (*Folder, error) {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%s: %s", place, fmt.Sprintf(format, args...))
	}
	const places = "give a path, s3://bucket/folder, gs://bucket/folder or az://container/folder"
	u, err := url.Parse(place)
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return nil, wrong("not a valid URL (%v): %s", failed.Err, places)
	}
	switch u.Scheme {
	case "s3", "gs", "az":
	case "abfs", "abfss", "wasb", "wasbs":
		return nil, wrong("give az://container/folder, and the account's name in AZURE_STORAGE_ACCOUNT (docs/stores.md)")
	default:
		return nil, wrong("%s:// is not supported: %s", u.Scheme, places)
	}
	if u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		bucket := "bucket"
		if u.Scheme == "az" {
			bucket = "container"
		}
		return nil, wrong("give %s://%s/folder", u.Scheme, bucket)
	}
	f := &Folder{scheme: u.Scheme, bucket: u.Host, worked: new([kinds]atomic.Bool)}
	if key := strings.Trim(u.Path, "/"); key != "" {
		f.prefix = key + "/"
	}
	if u.Scheme == "az" {
		f.protocol, err = openAzure(u.Host)
	} else {
		f.protocol, err = openS3(u.Host, u.Scheme == "gs")
	}
	if err != nil {
		return nil, wrong("%v", err)
	}
	return f, nil
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

// URL returns the folder's URL without a slash at its end. Folders of the same bucket and prefix return the same URL, because
// users of [weights.Store] compare URLs.
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
	_, _, err := f.page(ctx, "", 1)
	return err
}

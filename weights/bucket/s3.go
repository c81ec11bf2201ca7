package bucket

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/lowtoggle/lowtoggle/weights"
)

// s3 is the protocol of Amazon S3 and Google Cloud Storage.
type s3 struct {
	bucket string
	google bool // Google Cloud Storage, whose checksums differ from S3's
	core   *minio.Core
}

func openS3(bucket string, google bool) (protocol, error) {
	if err := s3utils.CheckValidBucketName(bucket); err != nil {
		return nil, err
	}
	endpoint := "https://s3.amazonaws.com"
	if google {
		endpoint = "https://storage.googleapis.com"
	} else if v := firstSet("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"); v != "" {
		endpoint = v
	}
	at, err := url.Parse(endpoint)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, fmt.Errorf("the endpoint %q is not a URL: set AWS_ENDPOINT_URL to a URL such as https://store.example", endpoint)
	}
	// With an empty region, the library asks the store for the bucket's region.
	core, err := minio.NewCore(at.Host, &minio.Options{Creds: chain(), Secure: at.Scheme == "https", Region: firstSet("AWS_REGION", "AWS_DEFAULT_REGION"),
		Transport: watched{transport()}, MaxRetries: 1})
	return &s3{bucket, google, core}, err
}

// firstSet returns the value of the first of some environment variables that is set.
func firstSet(names ...string) string {
	for _, name := range names {
		if v := os.Getenv(name); v != "" {
			return v
		}
	}
	return ""
}

// chain returns credentials from the places where Amazon's tools look.
func chain() *credentials.Credentials {
	return credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{},
		&credentials.IAM{Client: &http.Client{Timeout: 2 * time.Second}}})
}

func (s *s3) credentials() string {
	return "the credentials (AWS_ACCESS_KEY_ID, or AWS_PROFILE) and the bucket's policy"
}

func (s *s3) failure(err error) (code string, status int) {
	answer, _ := errors.AsType[minio.ErrorResponse](err)
	return answer.Code, answer.StatusCode
}

func (s *s3) list(ctx context.Context, prefix, after string, most int) (found []weights.Object, next string, err error) {
	page, err := ended(ctx, func() (minio.ListBucketV2Result, error) {
		return s.core.ListObjectsV2(s.bucket, prefix, "", after, "", most)
	})
	for _, o := range page.Contents {
		found = append(found, weights.Object{Path: o.Key, Size: o.Size, Version: version(o.ETag)})
	}
	if page.IsTruncated {
		next = page.NextContinuationToken
	}
	return found, next, err
}

// ended returns the result of call, or ctx's error if ctx ends first. A later result of call is discarded. ended is needed
// because the library's list request takes no context.
func ended[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := call()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}

func version(etag string) string { return strings.Trim(etag, `"`) }

func (s *s3) get(ctx context.Context, o weights.Object, at, n int64) (io.ReadCloser, weights.Object, error) {
	var options minio.GetObjectOptions
	if n >= 0 {
		if err := options.SetRange(at, at+n-1); err != nil {
			return nil, o, err
		}
	}
	if o.Version != "" {
		if err := options.SetMatchETag(o.Version); err != nil {
			return nil, o, err
		}
	}
	body, info, _, err := s.core.GetObject(ctx, s.bucket, o.Path, options)
	return body, weights.Object{Path: o.Path, Size: info.Size, Version: version(info.ETag)}, err
}

func (s *s3) stat(ctx context.Context, key string) (weights.Object, error) {
	info, err := s.core.StatObject(ctx, s.bucket, key, minio.StatObjectOptions{})
	return weights.Object{Path: key, Size: info.Size, Version: version(info.ETag)}, err
}

func (s *s3) put(ctx context.Context, key string, data []byte, fresh bool) error {
	options := minio.PutObjectOptions{ContentType: contentType, DisableContentSha256: true} // the body has an MD5 instead
	if fresh {
		options.SetMatchETagExcept("*")
	}
	sum := md5.Sum(data)
	_, err := s.core.PutObject(ctx, s.bucket, key, bytes.NewReader(data), int64(len(data)), base64.StdEncoding.EncodeToString(sum[:]), "", options)
	return err
}

func (s *s3) remove(ctx context.Context, key string) error {
	return s.core.RemoveObject(ctx, s.bucket, key, minio.RemoveObjectOptions{})
}

// s3Upload is an upload in parts.
type s3Upload struct {
	s     *s3
	key   string
	nonce string // distinguishes this upload's object from another one of the same name
	id    string // the upload's id

	mu    sync.Mutex
	parts []minio.CompletePart
}

func (s *s3) multipart(key string) multipart { return &s3Upload{s: s, key: key, nonce: rand.Text()} }

// nonceKey is the metadata key of the upload that made an object.
const nonceKey = "Lowtoggle-Upload"

func (u *s3Upload) begin(ctx context.Context) (err error) {
	o := minio.PutObjectOptions{ContentType: contentType, UserMetadata: map[string]string{nonceKey: u.nonce}}
	if !u.s.google {
		o.UserMetadata["X-Amz-Checksum-Algorithm"] = "CRC32C"
	}
	u.id, err = u.s.core.NewMultipartUpload(ctx, u.s.bucket, u.key, o)
	return err
}

func (u *s3Upload) part(ctx context.Context, number int, data []byte) error {
	done := minio.CompletePart{PartNumber: number}
	o := minio.PutObjectPartOptions{DisableContentSha256: true}
	if u.s.google {
		sum := md5.Sum(data)
		o.Md5Base64 = base64.StdEncoding.EncodeToString(sum[:])
	} else {
		done.ChecksumCRC32C = crc(data)
		o.CustomHeader = http.Header{"X-Amz-Checksum-Crc32c": {done.ChecksumCRC32C}}
	}
	part, err := u.s.core.PutObjectPart(ctx, u.s.bucket, u.key, u.id, number, bytes.NewReader(data), int64(len(data)), o)
	if err != nil {
		return err
	}
	done.ETag = part.ETag
	u.mu.Lock()
	defer u.mu.Unlock()
	u.parts = append(u.parts, done)
	return nil
}

// complete implements [multipart]. If the answer to an earlier attempt was lost, or a proxy sent the request twice, the store
// no longer knows the upload. complete then looks for the object.
func (u *s3Upload) complete(ctx context.Context, size int64) error {
	slices.SortFunc(u.parts, func(a, b minio.CompletePart) int { return a.PartNumber - b.PartNumber })
	_, err := u.s.core.CompleteMultipartUpload(ctx, u.s.bucket, u.key, u.id, u.parts, minio.PutObjectOptions{})
	if code, _ := u.s.failure(err); code != "NoSuchUpload" {
		return err
	}
	made, missing := u.s.core.StatObject(ctx, u.s.bucket, u.key, minio.StatObjectOptions{})
	switch _, status := u.s.failure(missing); {
	case missing == nil && made.Size == size && made.UserMetadata[nonceKey] == u.nonce:
		return nil
	case missing != nil && status != http.StatusNotFound:
		return missing
	}
	return err
}

func (u *s3Upload) abort(ctx context.Context) error {
	return u.s.core.AbortMultipartUpload(ctx, u.s.bucket, u.key, u.id)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// crc returns the CRC-32C of data in base64, as S3 writes it.
func crc(data []byte) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.Checksum(data, castagnoli)))
}

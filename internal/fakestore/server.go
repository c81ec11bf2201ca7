// Package fakestore is an object store in memory, for tests only. It implements the parts of S3's and of Azure's Blob
// protocol that lowtoggle uses. The package also has a handler that injects faults into requests to any store.
//
// The store checks the same as a real store: ranges, conditions, checksums, the key's name (not the signature), and
// that the parts of an upload exist. An opt-in test runs the same checks against a real store.
package fakestore

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"hash/crc32"
	"hash/crc64"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Key and Secret are the credentials that the store accepts. Key is also the name of Azure's account.
const (
	Key    = "reader"
	Secret = "not-checked"
)

// Buckets with a specific fault.
const (
	ReadOnly  = "readonly"  // writing is refused
	Elsewhere = "elsewhere" // lies in another region of S3
	Expiring  = "expiring"  // credentials expire after some requests
)

// expiresAfter is the number of requests that the bucket Expiring accepts.
const expiresAfter = 12

type object struct {
	data []byte
	etag string
	meta http.Header

	blocks map[string][]byte // of a blob that was made of blocks
}

type upload struct {
	key   string
	meta  http.Header
	parts map[int]object
}

// Server is a store. The zero value is not ready; see [New].
type Server struct {
	mu      sync.Mutex
	buckets map[string]map[string]object
	uploads map[string]*upload
	blocks  map[string]map[string][]byte // of blobs, not committed, by container/key and id
	begun   int
	// Requests to the bucket Expiring, of S3's and of Azure's protocol.
	expires, blobExpires int
	// Read and Written count the bytes of bodies.
	Read, Written int64
}

// New returns a store with these buckets.
func New(buckets ...string) *Server {
	s := &Server{buckets: map[string]map[string]object{}, uploads: map[string]*upload{}, blocks: map[string]map[string][]byte{}}
	for _, b := range append(buckets, ReadOnly, Elsewhere, Expiring) {
		s.buckets[b] = map[string]object{}
	}
	return s
}

// Put stores an object.
func (s *Server) Put(bucket, key string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buckets[bucket][key] = newObject(data, nil)
}

// Objects returns the objects whose keys begin with a prefix. The result maps the rest of the key to the content.
func (s *Server) Objects(bucket, prefix string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]string{}
	for key, o := range s.buckets[bucket] {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			found[rest] = string(o.data)
		}
	}
	return found
}

// Uploads returns the number of S3 uploads that were begun and neither completed nor aborted.
func (s *Server) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uploads)
}

func newObject(data []byte, meta http.Header) object {
	sum := md5.Sum(data)
	return object{data: data, etag: `"` + hex.EncodeToString(sum[:]) + `"`, meta: meta}
}

// answer is an error response of the protocol.
type answer struct {
	status int
	code   string
}

var (
	noSuchBucket = answer{404, "NoSuchBucket"}
	noSuchKey    = answer{404, "NoSuchKey"}
	noSuchUpload = answer{404, "NoSuchUpload"}
	precondition = answer{412, "PreconditionFailed"}
	badDigest    = answer{400, "BadDigest"}
	denied       = answer{403, "AccessDenied"}
)

func (a answer) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("X-Ms-Error-Code", a.code) // Azure's answers to HEAD have nothing else
	w.WriteHeader(a.status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%[1]s</Message></Error>", a.code)
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.ContentLength >= 0 && int64(len(body)) != r.ContentLength {
		answer{400, "IncompleteBody"}.write(w)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Written += int64(len(body))
	if isBlob(r) {
		s.azure(w, r, body)
		return
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if a := s.refuses(r, bucket); a.code != "" {
		a.write(w)
		return
	}
	objects, ok := s.buckets[bucket]
	if !ok {
		noSuchBucket.write(w)
		return
	}
	q := r.URL.Query()
	switch {
	case key == "" && q.Has("location"):
		fmt.Fprint(w, `<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></LocationConstraint>`)
	case key == "":
		list(w, q.Get("prefix"), q.Get("continuation-token"), q.Get("max-keys"), objects)
	case r.Method == http.MethodPost && q.Has("uploads"):
		s.begun++
		id := "upload-" + strconv.Itoa(s.begun)
		s.uploads[id] = &upload{key, metaOf(r.Header), map[int]object{}}
		fmt.Fprintf(w, "<InitiateMultipartUploadResult><Bucket>%s</Bucket><Key>%s</Key><UploadId>%s</UploadId></InitiateMultipartUploadResult>", bucket, key, id)
	case q.Has("uploadId"):
		s.multipart(w, r, bucket, key, body)
	case r.Method == http.MethodPut:
		put(w, r, objects, key, body)
	case r.Method == http.MethodDelete:
		delete(objects, key)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		s.get(w, r, objects, key)
	default:
		answer{501, "NotImplemented"}.write(w)
	}
}

// refuses returns the error response for a request that is not allowed.
func (s *Server) refuses(r *http.Request, bucket string) answer {
	write := r.Method != http.MethodGet && r.Method != http.MethodHead
	if bucket == Expiring {
		s.expires++
	}
	switch {
	case !strings.Contains(r.Header.Get("Authorization"), "Credential="+Key+"/"):
		return answer{403, "InvalidAccessKeyId"}
	case bucket == ReadOnly && write:
		return denied
	case bucket == Elsewhere:
		return answer{301, "PermanentRedirect"}
	case bucket == Expiring && s.expires > expiresAfter:
		return answer{400, "ExpiredToken"}
	}
	return answer{}
}

func metaOf(h http.Header) http.Header {
	meta := http.Header{}
	for name, v := range h {
		if strings.HasPrefix(name, "X-Amz-Meta-") {
			meta[name] = v
		}
	}
	return meta
}

func list(w http.ResponseWriter, prefix, after, most string, objects map[string]object) {
	type content struct {
		Key, ETag string
		Size      int
	}
	var result struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		Prefix                string
		IsTruncated           bool
		NextContinuationToken string
		Contents              []content
	}
	keys, next := page(objects, prefix, after, most)
	for _, key := range keys {
		result.Contents = append(result.Contents, content{key, objects[key].etag, len(objects[key].data)})
	}
	result.IsTruncated, result.NextContinuationToken = next != "", next
	xml.NewEncoder(w).Encode(result)
}

// intact reports whether a body agrees with the checksums in its headers.
func intact(h http.Header, body []byte) bool {
	if want := h.Get("Content-Md5"); want != "" {
		sum := md5.Sum(body)
		return base64.StdEncoding.EncodeToString(sum[:]) == want
	}
	if want := h.Get("X-Amz-Checksum-Crc32c"); want != "" {
		sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
		return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum)) == want
	}
	if want := h.Get("X-Ms-Content-Crc64"); want != "" {
		sum := crc64.Checksum(body, crc64.MakeTable(0x9A6C9329AC4BC9B5))
		return base64.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint64(nil, sum)) == want
	}
	return false // every body must have a checksum
}

func put(w http.ResponseWriter, r *http.Request, objects map[string]object, key string, body []byte) {
	if _, there := objects[key]; there && strings.Trim(r.Header.Get("If-None-Match"), `"`) == "*" {
		precondition.write(w)
		return
	}
	if !intact(r.Header, body) {
		badDigest.write(w)
		return
	}
	objects[key] = newObject(body, metaOf(r.Header))
	w.Header().Set("ETag", objects[key].etag)
}

func (s *Server) multipart(w http.ResponseWriter, r *http.Request, bucket, key string, body []byte) {
	objects := s.buckets[bucket]
	id := r.URL.Query().Get("uploadId")
	u, ok := s.uploads[id]
	if !ok || u.key != key {
		noSuchUpload.write(w)
		return
	}
	switch r.Method {
	case http.MethodPut:
		if !intact(r.Header, body) {
			badDigest.write(w)
			return
		}
		n, _ := strconv.Atoi(r.URL.Query().Get("partNumber"))
		u.parts[n] = newObject(body, nil)
		w.Header().Set("ETag", u.parts[n].etag)
	case http.MethodDelete:
		delete(s.uploads, id)
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPost:
		var asked struct {
			Part []struct {
				PartNumber int
				ETag       string
			}
		}
		if xml.Unmarshal(body, &asked) != nil || len(asked.Part) != len(u.parts) {
			answer{400, "InvalidPart"}.write(w)
			return
		}
		var data []byte
		for i, p := range asked.Part {
			part, ok := u.parts[p.PartNumber]
			if !ok || p.PartNumber != i+1 || strings.Trim(p.ETag, `"`) != strings.Trim(part.etag, `"`) {
				answer{400, "InvalidPart"}.write(w)
				return
			}
			data = append(data, part.data...)
		}
		objects[key] = newObject(data, u.meta)
		delete(s.uploads, id)
		fmt.Fprintf(w, "<CompleteMultipartUploadResult><Bucket>%s</Bucket><Key>%s</Key><ETag>%s</ETag></CompleteMultipartUploadResult>", bucket, key, objects[key].etag)
	}
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, objects map[string]object, key string) {
	missing, another := noSuchKey, precondition
	if isBlob(r) {
		missing, another = answer{404, "BlobNotFound"}, answer{412, "ConditionNotMet"}
	}
	o, ok := objects[key]
	if !ok {
		missing.write(w)
		return
	}
	if want := r.Header.Get("If-Match"); want != "" && strings.Trim(want, `"`) != strings.Trim(o.etag, `"`) {
		another.write(w)
		return
	}
	h := w.Header()
	for name, v := range o.meta {
		h[name] = v
	}
	h.Set("ETag", o.etag)
	h.Set("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
	h.Set("Content-Type", "application/octet-stream")
	data, status := o.data, http.StatusOK
	if want := r.Header.Get("Range") + r.Header.Get("X-Ms-Range"); want != "" {
		var from, to int
		if n, _ := fmt.Sscanf(want, "bytes=%d-%d", &from, &to); n != 2 || from >= len(data) {
			answer{416, "InvalidRange"}.write(w)
			return
		}
		to = min(to, len(data)-1)
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(data)))
		data, status = data[from:to+1], http.StatusPartialContent
	}
	h.Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		n, _ := w.Write(data)
		s.Read += int64(n)
	}
}

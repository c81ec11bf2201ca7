package fakestore

import (
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// SAS is the shared access signature that the store accepts, and Token the token of an identity.
const (
	SAS   = "sv=2026-01-01&sr=c&sig=" + Secret
	Token = "token-of-the-identity"
)

// isBlob reports whether a request uses Azure's Blob protocol.
func isBlob(r *http.Request) bool { return r.Header.Get("X-Ms-Version") != "" }

// azure answers a request of Azure's Blob protocol. The first name of the path is the account's.
func (s *Server) azure(w http.ResponseWriter, r *http.Request, body []byte) {
	account, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	container, key, _ := strings.Cut(path, "/")
	if a := s.refusesBlob(r, account, container); a.code != "" {
		a.write(w)
		return
	}
	objects, ok := s.buckets[container]
	if !ok {
		answer{404, "ContainerNotFound"}.write(w)
		return
	}
	w.Header().Set("X-Ms-Version", r.Header.Get("X-Ms-Version"))
	q := r.URL.Query()
	switch {
	case key == "" && r.Method == http.MethodGet && q.Get("restype") == "container" && q.Get("comp") == "list":
		listBlobs(w, q, objects)
	case key == "":
		answer{400, "UnsupportedQueryParameter"}.write(w)
	case r.Method == http.MethodPut:
		s.putBlob(w, r, container, key, body)
	case r.Method == http.MethodDelete:
		if _, ok := objects[key]; !ok {
			answer{404, "BlobNotFound"}.write(w)
			return
		}
		delete(objects, key)
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		s.get(w, r, objects, key)
	default:
		answer{405, "UnsupportedHttpVerb"}.write(w)
	}
}

func (s *Server) refusesBlob(r *http.Request, account, container string) answer {
	if container == Expiring {
		s.blobExpires++
	}
	auth := r.Header.Get("Authorization")
	switch {
	case account != Key, !strings.HasPrefix(auth, "SharedKey "+Key+":") && auth != "Bearer "+Token && r.URL.Query().Get("sig") != Secret:
		return answer{403, "AuthenticationFailed"}
	case container == ReadOnly && r.Method != http.MethodGet && r.Method != http.MethodHead:
		return answer{403, "AuthorizationPermissionMismatch"}
	case container == Expiring && s.blobExpires > expiresAfter:
		return answer{403, "AuthenticationFailed"}
	}
	return answer{}
}

func listBlobs(w http.ResponseWriter, q url.Values, objects map[string]object) {
	type name struct {
		Encoded bool   `xml:",attr,omitempty"`
		Text    string `xml:",chardata"`
	}
	type found struct {
		Name       name
		Properties struct {
			Length int `xml:"Content-Length"`
			Etag   string
		}
	}
	var result struct {
		XMLName xml.Name `xml:"EnumerationResults"`
		Blobs   struct {
			Blob []found
		}
		NextMarker string
	}
	keys, next := page(objects, q.Get("prefix"), q.Get("marker"), q.Get("maxresults"))
	for _, key := range keys {
		f := found{Name: name{Text: key}}
		if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' }) {
			f.Name = name{Encoded: true, Text: url.PathEscape(key)}
		}
		f.Properties.Length, f.Properties.Etag = len(objects[key].data), strings.Trim(objects[key].etag, `"`)
		result.Blobs.Blob = append(result.Blobs.Blob, f)
	}
	result.NextMarker = next
	fmt.Fprint(w, xml.Header)
	xml.NewEncoder(w).Encode(result)
}

// putBlob writes a whole blob, a block of one, or the list of its blocks.
func (s *Server) putBlob(w http.ResponseWriter, r *http.Request, container, key string, body []byte) {
	q, objects, place := r.URL.Query(), s.buckets[container], container+"/"+key
	comp := q.Get("comp")
	if comp != "blocklist" && !intact(r.Header, body) {
		answer{400, "Crc64Mismatch"}.write(w)
		return
	}
	var made object
	switch {
	case comp == "block":
		id := q.Get("blockid")
		for other := range s.blocks[place] {
			if len(other) != len(id) {
				answer{400, "InvalidBlobOrBlock"}.write(w)
				return
			}
		}
		if s.blocks[place] == nil {
			s.blocks[place] = map[string][]byte{}
		}
		s.blocks[place][id] = body
		w.WriteHeader(http.StatusCreated)
		return
	case comp == "blocklist":
		var asked struct{ Latest []string }
		if xml.Unmarshal(body, &asked) != nil {
			answer{400, "InvalidXmlDocument"}.write(w)
			return
		}
		var data []byte
		blocks := map[string][]byte{}
		for _, id := range asked.Latest {
			block, ok := s.blocks[place][id]
			if !ok {
				if block, ok = objects[key].blocks[id]; !ok {
					answer{400, "InvalidBlockList"}.write(w)
					return
				}
			}
			data, blocks[id] = append(data, block...), block
		}
		made = newObject(data, nil)
		made.blocks = blocks
	case comp == "" && r.Header.Get("X-Ms-Blob-Type") == "BlockBlob":
		if _, there := objects[key]; there && r.Header.Get("If-None-Match") == "*" {
			answer{409, "BlobAlreadyExists"}.write(w)
			return
		}
		made = newObject(body, nil)
	default:
		answer{400, "InvalidQueryParameterValue"}.write(w)
		return
	}
	objects[key] = made
	delete(s.blocks, place) // blocks outside the list are dropped
	w.Header().Set("ETag", made.etag)
	w.WriteHeader(http.StatusCreated)
}

// page returns at most most keys that begin with prefix and come after the key after. If more keys follow, next is the last
// one; else it is empty.
func page(objects map[string]object, prefix, after, most string) (keys []string, next string) {
	n, err := strconv.Atoi(most)
	if err != nil {
		n = 1000
	}
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		switch {
		case !strings.HasPrefix(key, prefix) || key <= after:
		case len(keys) == n:
			return keys, keys[n-1]
		default:
			keys = append(keys, key)
		}
	}
	return keys, ""
}

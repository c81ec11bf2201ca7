package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/weights"
)

// ManifestName is the name of the file beside converted weights that describes the conversion.
const ManifestName = "lowtoggle.json"

// ManifestVersion is the version of the manifest that this package reads and writes. The plan in a manifest has its
// own version.
const ManifestVersion = 1

// Manifest is the content of [ManifestName].
type Manifest struct {
	Version int `json:"manifest_version"`
	// DropIn is [Plan.DropIn].
	DropIn bool    `json:"drop_in"`
	Shards []Shard `json:"shards"`
	// Files are all files of the folder except the manifest; nil if an older version wrote the manifest.
	Files []File `json:"files,omitempty"`
	// LeftOut are the source's files and folders that were not copied.
	LeftOut []weights.Leftover `json:"left_out,omitempty"`
	// Folder holds the options of the conversion that are not in the plan; nil if there were none.
	Folder *Folder `json:"folder,omitempty"`
	Plan   *Plan   `json:"plan"`
	// Previous is the manifest of the source if the source was converted before.
	Previous json.RawMessage `json:"previous,omitempty"`
}

// Shard has the name of a shard, and the SHA-256 of the whole file before and after the conversion.
type Shard struct {
	File   string `json:"file"`
	Source string `json:"source_sha256"`
	Output string `json:"output_sha256"`
}

// File is a file of a converted folder.
type File struct {
	Path   string `json:"path"` // slash-separated path in the folder
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// Folder selects the files beside the weights of a result.
type Folder struct {
	// Keep are globs of files that are copied although [weights.Model.Leftovers] lists them.
	Keep []string `json:"keep,omitempty"`
	// BaseModel is the source's name on a model hub, for the model card; empty: the name in the source's files.
	BaseModel string `json:"base_model,omitempty"`
}

// recorded returns the folder for a manifest; nil if no option is set.
func (f Folder) recorded() *Folder {
	if len(f.Keep) == 0 && f.BaseModel == "" {
		return nil
	}
	return &f
}

// NewManifest returns the manifest of a plan that will be carried out. Its files are added later.
func NewManifest(p *Plan, f Folder) *Manifest {
	return &Manifest{Version: ManifestVersion, DropIn: p != nil && p.DropIn, Folder: f.recorded(), Plan: p}
}

// Asked returns the options that are not in the plan.
func (m *Manifest) Asked() Folder {
	if m.Folder == nil {
		return Folder{}
	}
	return *m.Folder
}

// Encode renders the manifest as JSON. The plan has one line for each step.
func (m *Manifest) Encode() ([]byte, error) {
	plan, err := m.Plan.Encode()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n  \"manifest_version\": %d,\n  \"drop_in\": %v,\n  ", m.Version, m.DropIn)
	if err := encodeLines(&b, "shards", m.Shards); err != nil {
		return nil, err
	}
	if m.Files != nil {
		b.WriteString(",\n  ")
		if err := encodeLines(&b, "files", m.Files); err != nil {
			return nil, err
		}
	}
	if len(m.LeftOut) > 0 {
		b.WriteString(",\n  ")
		if err := encodeLines(&b, "left_out", m.LeftOut); err != nil {
			return nil, err
		}
	}
	if m.Folder != nil {
		js, err := json.Marshal(m.Folder)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, ",\n  \"folder\": %s", js)
	}
	fmt.Fprintf(&b, ",\n  \"plan\": %s", bytes.TrimSpace(plan))
	if len(m.Previous) > 0 {
		b.WriteString(",\n  \"previous\": ")
		if err := json.Compact(&b, m.Previous); err != nil {
			return nil, err
		}
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

// ReadManifest reads the manifest in a folder. If there is none, the error is fs.ErrNotExist.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, ManifestName)
	js, err := bounded.ReadFile(path, bounded.Plan)
	if err != nil {
		return nil, err
	}
	return DecodeManifest(path, js)
}

// ManifestOf is [ReadManifest] for the folder of a model.
func ManifestOf(m *weights.Model) (*Manifest, error) {
	if m == nil {
		return nil, weights.ErrNoModel
	}
	js, err := m.ReadFile(ManifestName, bounded.Plan)
	if err != nil {
		return nil, err
	}
	return DecodeManifest(m.Path(ManifestName), js)
}

// Unread reports whether an error of [ManifestOf] or [ReadManifest] means that the manifest exists but could not be
// read. Its content is then unknown.
func Unread(err error) bool {
	_, malformed := errors.AsType[*weights.PlaceError](err)
	return err != nil && !malformed && !errors.Is(err, fs.ErrNotExist)
}

// DecodeManifest decodes a manifest. path is the file's name for messages.
func DecodeManifest(path string, js []byte) (*Manifest, error) {
	var outer struct {
		Version  int                `json:"manifest_version"`
		DropIn   bool               `json:"drop_in"`
		Shards   []Shard            `json:"shards"`
		Files    []File             `json:"files"`
		LeftOut  []weights.Leftover `json:"left_out"`
		Folder   *Folder            `json:"folder"`
		Plan     json.RawMessage    `json:"plan"`
		Previous json.RawMessage    `json:"previous"`
	}
	if err := json.Unmarshal(js, &outer); err != nil {
		return nil, weights.FileErrorf(path, "%w: copy the folder again with this file, or convert again", err)
	}
	if outer.Version == 0 {
		return nil, weights.FileErrorf(path, "has no manifest_version: copy the folder again with this file, or convert again")
	}
	if outer.Version != ManifestVersion {
		return nil, weights.FileErrorf(path, "the manifest has version %d, and this program reads version %d: use the lowtoggle that wrote it", outer.Version, ManifestVersion)
	}
	plan, err := Decode(outer.Plan)
	if err != nil {
		return nil, weights.FileErrorf(path, "%w", err)
	}
	return &Manifest{outer.Version, outer.DropIn, outer.Shards, outer.Files, outer.LeftOut, outer.Folder, plan, outer.Previous}, nil
}

// Previous returns the manifest of an earlier conversion in the source's folder; nil if there is none. For a model
// given as a single file it returns nil, because a manifest beside the file may belong to another model.
func Previous(m *weights.Model) (json.RawMessage, error) {
	if m == nil {
		return nil, weights.ErrNoModel
	}
	if !slices.Contains(m.Others, ManifestName) {
		return nil, nil
	}
	js, err := m.ReadFile(ManifestName, bounded.Plan)
	if err == nil && !json.Valid(js) {
		err = weights.FileErrorf(m.Path(ManifestName), "is not JSON: move this file away and try again")
	}
	return js, err
}

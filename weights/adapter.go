package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
)

// AdapterName and AdapterConfigName are the names of a LoRA adapter's two files: its matrices, and its config.
const (
	AdapterName       = "adapter_model.safetensors"
	AdapterConfigName = "adapter_config.json"
)

// openAdapter opens the LoRA adapter among the folder's files, if there is one.
func (m *Model) openAdapter(files []string) (err error) {
	if !slices.Contains(files, AdapterName) {
		return nil
	}
	opened, err := m.place.open([]string{AdapterName})
	if err != nil {
		return err
	}
	m.Adapter = opened[0]
	m.AdapterConfig, err = m.ReadFile(AdapterConfigName, bounded.Config)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

// StrayAdapters lists the adapter files in a model's folder that [Open] does not read: files of other formats, and files in
// subfolders. Paths are relative to the folder.
func (m *Model) StrayAdapters() (stray []string) {
	beside := map[string]bool{} // folders that hold an adapter's weights
	for _, file := range m.Others {
		switch path.Base(file) {
		case AdapterName, "adapter_model.bin":
			stray, beside[path.Dir(file)] = append(stray, file), true
		}
	}
	for _, file := range m.Others {
		dir := path.Dir(file)
		if path.Base(file) == AdapterConfigName && !beside[dir] && !(dir == "." && m.Adapter != nil) {
			stray = append(stray, file)
		}
	}
	return stray
}

// adapterAlone returns the error for a folder that has an adapter and no model.
func (m *Model) adapterAlone() error {
	var config struct {
		Base string `json:"base_model_name_or_path"`
	}
	base := "its base model"
	js, err := m.ReadFile(AdapterConfigName, bounded.Config)
	if err == nil && json.Unmarshal(js, &config) == nil && config.Base != "" {
		base += " " + config.Base
	}
	return fmt.Errorf("%s: holds an adapter and no base model: copy the folder of %s (links will do), add %s and %s to the copy, and give the copy",
		m.Dir, base, AdapterName, AdapterConfigName)
}

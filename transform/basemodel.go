package transform

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/transform/card"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// hubModel matches the name of a model on a hub.
var hubModel = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$`)

// notInName matches runs of characters that a name on a hub cannot have.
var notInName = regexp.MustCompile(`[^\w.-]+`)

// BaseModel returns the name of a model on a hub, for the card of a conversion, and the origin of the name: an
// earlier conversion's card, the Hub's cache, config.json, or the folder's name. The base_model of the model's card is
// used only if lowtoggle wrote the card. In other cards, base_model names the model from which this model was made.
func BaseModel(m *weights.Model) (name, from string) {
	if m == nil {
		return "", ""
	}
	if slices.Contains(m.Others, plan.ManifestName) && slices.Contains(m.Others, card.Name) {
		text, err := m.ReadFile(card.Name, bounded.Config)
		if base := card.BaseOf(text); err == nil && base != "" {
			return base, "the card of the earlier conversion"
		}
	}
	dir := m.Dir
	if m.OnDisk() {
		if full, err := filepath.Abs(dir); err == nil {
			dir = full
		}
	}
	if snapshots := filepath.Dir(dir); filepath.Base(snapshots) == "snapshots" {
		if cached, ok := strings.CutPrefix(filepath.Base(filepath.Dir(snapshots)), "models--"); ok {
			return strings.ReplaceAll(cached, "--", "/"), "the Hub's cache"
		}
	}
	var config struct {
		Name string `json:"_name_or_path"`
	}
	if json.Unmarshal(m.Config, &config) == nil && hubModel.MatchString(config.Name) {
		return config.Name, "config.json"
	}
	name = strings.Trim(notInName.ReplaceAllString(filepath.Base(dir), "-"), "-.")
	if name == "" {
		name = "model"
	}
	return name, "the folder's name"
}

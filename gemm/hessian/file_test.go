package hessian

import (
	"path/filepath"
	"testing"
)

func TestFileNamesStayInTheFolder(t *testing.T) {
	seen := map[string]string{}
	for _, layer := range []string{"a.weight", "a/weight", "a%2Fweight", `a\weight`, "..", "../a", "/a", "", "a b", "a+b", "a:b", "a\x00b", "ä"} {
		name := fileName(layer)
		if filepath.Base(name) != name || !filepath.IsLocal(name) {
			t.Errorf("the file of %q is %q", layer, name)
		}
		if other, taken := seen[name]; taken {
			t.Errorf("%q and %q share %q", layer, other, name)
		}
		seen[name] = layer
	}
}

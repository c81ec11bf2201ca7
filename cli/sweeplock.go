package cli

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// lockPath is the file that stands for a card: in the folder for temporary files, which users share.
func lockPath(id string) string {
	if file, simulated := strings.CutPrefix(id, simulatedDevice+":"); simulated {
		if whole, err := filepath.Abs(file); err == nil {
			file = whole
		}
		id = fmt.Sprintf("%s-%x", simulatedDevice, sha256.Sum256([]byte(file)))
	}
	return filepath.Join(os.TempDir(), "lowtoggle-sweep-"+id+".lock")
}

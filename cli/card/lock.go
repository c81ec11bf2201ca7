package card

import (
	"crypto/sha256"
	"fmt"
	"os"

	"github.com/lowtoggle/lowtoggle/internal/lock"
)

// lockComponents locks a file of components against this user's other calibrate processes, which would overwrite the
// readings.
func lockComponents(file string) (*os.File, error) {
	id := fmt.Sprintf("components-%d-%x", os.Getuid(), sha256.Sum256([]byte(fullPath(file))))
	return lock.Temporary(id, "another calibrate is writing "+file)
}

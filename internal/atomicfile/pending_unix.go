//go:build !windows

package atomicfile

import (
	"path/filepath"

	"github.com/google/renameio/v2"
)

// pending opens a temporary file beside path. The temporary folder of the system would do too where it is
// on the same disk, but leftovers of a killed process would lie where nobody looks for them.
func pending(path string) (*renameio.PendingFile, error) {
	return renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)),
		renameio.WithPermissions(permissions), renameio.WithExistingPermissions())
}

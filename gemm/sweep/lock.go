package sweep

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/lock"
)

const busy = "another sweep is running on this card"

// LockCard keeps other sweeps away from a card: they would take its present limit for the original. The card's name is its
// UUID, or any text that stands for a simulated card. Closing the file ends the lock, unless a watchdog inherited it.
func LockCard(card string) (*os.File, error) { return lock.Temporary(lockName(card), busy) }

// CheckCard returns an error if a sweep is running on a card. It writes nothing.
func CheckCard(card string) error { return lock.CheckTemporary(lockName(card), busy) }

func lockName(card string) string {
	if strings.ContainsAny(card, `:/\`) {
		card = fmt.Sprintf("%x", sha256.Sum256([]byte(card)))
	}
	return "sweep-" + card
}
